/** A line at the edge of the page that stays for a while: what was done, and perhaps a button that takes it back. */

const $ = (id) => document.getElementById(id);
const [box, text, act, close] = ["toast", "toast-text", "toast-act", "toast-close"].map($);
let timer = 0;
let action = null;
let rest = 0; // milliseconds for which it stays when nobody is at it

function stay() {
  clearTimeout(timer);
  timer = setTimeout(hide, rest);
}

export function hide() {
  clearTimeout(timer);
  if (box.contains(document.activeElement)) $("text").focus();
  box.hidden = true;
  text.textContent = "";
  action = null;
}

/** Show `words` for so many seconds, longer while the pointer or the focus is on it. `button` is {label, act}. */
export function toast(words, { seconds = 10, button = null } = {}) {
  box.hidden = false;
  text.textContent = words;
  action = button?.act ?? null;
  act.hidden = !button;
  act.textContent = button?.label ?? "";
  rest = seconds * 1000;
  stay();
  if (button) act.focus();
}

/** Do what its button does; false when there is none. */
export function takeBack() {
  const wanted = action;
  if (wanted) {
    hide();
    wanted();
  }
  return Boolean(wanted);
}

act.addEventListener("click", takeBack);
close.addEventListener("click", hide);
for (const kind of ["pointerenter", "focusin"]) box.addEventListener(kind, () => clearTimeout(timer));
for (const kind of ["pointerleave", "focusout"]) box.addEventListener(kind, () => action || !box.hidden ? stay() : null);
box.addEventListener("keydown", (event) => event.key === "Escape" && hide());
