/** A block of code: its language, a button that copies it, and its text in pieces, so that what is there isn't laid out again. */

import { el } from "./element.js";
import { gettext } from "./words.js";

const PIECE = 2000; // characters; a piece ends with a line

export function codeBlock() {
  const language = el("span", { className: "code-language" });
  const copy = el("button", { type: "button", className: "button button--quiet button--small code-copy" }, gettext("Copy"));
  copy.setAttribute("aria-label", gettext("Copy code"));
  const content = el("code");
  // It scrolls sideways, so that the keyboard must reach it.
  const pre = el("pre", { tabIndex: 0, aria: { role: "group", label: gettext("Code") } }, content);
  const element = el("div", { className: "code" }, el("div", { className: "code-head" }, language, copy), pre);
  return { element, content, language, frozen: "" };
}

export function writeCode(view, { text, language }) {
  if (view.language.textContent !== language) view.language.textContent = language;
  if (!text.startsWith(view.frozen)) {
    view.frozen = "";
    view.content.replaceChildren();
  }
  for (;;) {
    const from = view.frozen.length;
    const end = text.length - from > PIECE ? text.indexOf("\n", from + PIECE) + 1 : 0;
    const isWhole = end > 0 && end < text.length;
    set(view, isWhole ? text.slice(from, end) : text.slice(from));
    if (!isWhole) return;
    view.frozen = text.slice(0, end);
    view.content.append(el("span"));
  }
}

/** Give the last piece its text. What of it is there stays, and with it what a reader has selected. */
function set(view, text) {
  const piece = view.content.lastElementChild ?? view.content.appendChild(el("span"));
  const there = piece.firstChild;
  if (piece.textContent === text) return;
  if (there?.nodeType === Node.TEXT_NODE && piece.childNodes.length === 1 && text.startsWith(there.data)) {
    there.appendData(text.slice(there.length));
  } else piece.textContent = text;
}
