/** Copying: to the clipboard, and what is said of it. */

import { el } from "./element.js";
import { gettext } from "./words.js";

const SHOWN = 2000; // milliseconds

/** Put a text on the clipboard; returns whether it could be. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text); // there is none without TLS
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text) {
  const before = document.activeElement;
  const box = el("textarea", { value: text, className: "unseen", tabIndex: -1 });
  (document.querySelector("dialog:modal") ?? document.body).append(box); // outside a dialog nothing can be selected
  box.select();
  const isDone = document.execCommand("copy");
  box.remove();
  before?.focus({ preventScroll: true });
  return isDone;
}

/** Tell those who can't see it, politely. */
export function announce(text) {
  let status = document.getElementById("announced");
  if (!status) {
    status = el("p", { id: "announced", className: "unseen", aria: { role: "status" } });
    document.body.append(status);
  }
  status.textContent = "";
  setTimeout(() => (status.textContent = text), 50); // or what is said twice is heard once
}

/** Copy a text; the button that asks for it says what came of it, for a while. */
export async function copyFor(button, text) {
  const said = (await copy(text)) ? gettext("Copied") : gettext("Couldn't copy");
  announce(said);
  button.textContent = said;
  clearTimeout(button.timer);
  button.timer = setTimeout(() => (button.textContent = gettext("Copy")), SHOWN);
}

/** The copy buttons of the blocks of code in `root`. */
export function copyCode(root) {
  root.addEventListener("click", ({ target }) => {
    const button = target.closest?.(".code-copy");
    if (button) copyFor(button, button.closest(".code").querySelector("pre").textContent.replace(/\n$/, ""));
  });
}
