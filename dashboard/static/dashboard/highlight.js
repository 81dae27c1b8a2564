/** Colours for code. A worker finds them, so that whatever the code is, the page never waits; they are put in piece by piece. */

import { soon } from "./pace.js";

const SCRIPT = new URL("highlighter.js", import.meta.url).href;
const LONGEST = 200000; // characters
const PATIENCE = 5000; // milliseconds in which the worker must have an answer
let worker = null;
let patience = 0;
const asked = []; // [view, text], in the order of the answers

/** Colour a block of code that is closed; its language may be none that is known. */
export function highlight(view, { text, language }) {
  if (!/^[\w+#.-]{1,20}$/.test(language) || text.length > LONGEST || view.coloured === text) return;
  view.coloured = text;
  worker ??= start();
  asked.push([view, text]);
  worker.postMessage({ language, pieces: [...view.content.children].map((piece) => piece.textContent) });
  wait();
}

function start() {
  const policy = window.trustedTypes?.createPolicy && policyOnce();
  const made = new Worker(policy ? policy.createScriptURL("") : SCRIPT, { type: "module" });
  made.onmessage = ({ data }) => {
    const [view, text] = asked.shift();
    wait();
    if (data) colour(view, text, data);
  };
  made.onerror = giveUp;
  return made;
}

let policyMade;
const policyOnce = () => (policyMade ??= trustedTypes.createPolicy("highlighter", { createScriptURL: () => SCRIPT }));

function wait() {
  clearTimeout(patience);
  if (asked.length) patience = setTimeout(giveUp, PATIENCE);
}

/** What the worker is at takes too long: it stays without colours, and what waits behind it has to. */
function giveUp() {
  clearTimeout(patience);
  worker?.terminate();
  worker = null;
  asked.length = 0;
}

/** `runs`, for each piece: [length, class, length, class, …]. */
function colour(view, text, runs) {
  let i = 0;
  soon((until) => {
    while (i < runs.length) {
      if (view.coloured !== text || !view.element.isConnected) return true;
      if (isSelected(view.content)) {
        document.addEventListener("selectionchange", () => colour(view, text, runs.slice(i)), { once: true });
        return true;
      }
      const piece = view.content.children[view.content.children.length - runs.length + i];
      paint(piece, runs[i++]);
      if (performance.now() >= until) break;
    }
    return i >= runs.length;
  });
}

function isSelected(element) {
  const selection = getSelection();
  return !selection.isCollapsed && selection.containsNode(element, true);
}

function paint(piece, runs) {
  const text = piece.textContent;
  const nodes = [];
  let at = 0;
  for (let i = 0; i < runs.length; i += 2) {
    const words = text.slice(at, (at += runs[i]));
    if (!runs[i + 1]) nodes.push(words);
    else nodes.push(Object.assign(document.createElement("span"), { className: runs[i + 1], textContent: words }));
  }
  piece.replaceChildren(...nodes, text.slice(at));
}
