/** Keys that work everywhere on the chat page, and the list of them. On a Mac ⌘ stands for Ctrl. */

import { takeBack } from "./toast.js";

const $ = (id) => document.getElementById(id);
const isMac = /mac|iphone|ipad/i.test(navigator.platform);
const help = $("help");
const singleKeys = $("single-keys");
const OFF = "berth:no-single-keys";

/** By the key without a layer, as far as layouts differ by its place. */
const WITH_SHIFT = { KeyO: "new", Comma: "settings", KeyL: "share", KeyX: "export", Backspace: "delete" };

const isText = (element) => element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

/** Which of the actions a key press asks for. */
function asked(event) {
  const { key, code, shiftKey, altKey } = event;
  const isWithMod = isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  if (altKey) return "";
  if (isWithMod && shiftKey) return WITH_SHIFT[code] ?? (key === "/" ? "help" : "");
  if (isWithMod && key.toLowerCase() === "k") return "search";
  if (isWithMod && key === "/") return "help";
  if (isWithMod && key.toLowerCase() === "z" && !(isText(event.target) && event.target.value)) return "undo";
  if (isWithMod || event.ctrlKey || event.metaKey) return "";
  if (key === "F2") return "rename";
  if (key === "?" && singleKeys.checked && !isText(event.target)) return "help";
  return "";
}

function openHelp() {
  help.showModal();
}

/** Have keys do these: by name, a function. */
export function shortcuts(actions) {
  const all = { help: openHelp, undo: takeBack, ...actions };
  addEventListener("keydown", (event) => {
    if (event.isComposing || event.repeat) return;
    const what = asked(event);
    if (!all[what] || (document.querySelector("dialog[open]") && what !== "undo")) return;
    if (all[what]() !== false) event.preventDefault();
  });
}

if (isMac) {
  for (const key of help.querySelectorAll("[data-mod]")) key.textContent = "⌘";
  for (const key of help.querySelectorAll("[data-shift]")) key.textContent = "⇧";
}
singleKeys.checked = !localStorage.getItem(OFF);
singleKeys.addEventListener("change", () => (singleKeys.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "yes")));
$("open-help").addEventListener("click", openHelp);
$("help-close").addEventListener("click", () => help.close());
