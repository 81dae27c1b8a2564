/** To the message that the address names: a hit of a search. */

export function jump() {
  const id = /^#(message-\d+)$/.exec(location.hash)?.[1];
  const message = id && document.getElementById(id);
  for (const before of document.querySelectorAll(".message--found")) before.classList.remove("message--found");
  if (!message) return;
  message.tabIndex = -1;
  message.classList.add("message--found");
  message.focus({ preventScroll: true });
  message.scrollIntoView({ block: "center" });
}

addEventListener("hashchange", jump);
requestAnimationFrame(jump); // when the texts have their heights
