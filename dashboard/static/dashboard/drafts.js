/** What is written and not sent survives a reload: kept in this browser, for each person and chat. */

const main = document.getElementById("main");
const text = document.getElementById("text");
const key = `berth:draft:${main.dataset.user}:${main.dataset.chat || "new"}`;

function keep() {
  try {
    if (text.value.trim()) localStorage.setItem(key, text.value);
    else localStorage.removeItem(key);
  } catch {
    // The browser's store is full or closed: the text is still in its field.
  }
}

if (!text.value) {
  text.value = localStorage.getItem(key) ?? "";
  text.setSelectionRange(text.value.length, text.value.length);
}
text.addEventListener("input", keep);
addEventListener("pagehide", () => text.value || localStorage.removeItem(key)); // it was sent
