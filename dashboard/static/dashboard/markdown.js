/** A model's Markdown as elements, as it comes: what is finished is read and drawn once, and never touched again.

blocks.js finds the blocks, inline.js makes nodes of the words in them, sanitise.js lets nothing but harmless ones through. */

import { Blocks } from "./blocks.js";
import { codeBlock, writeCode } from "./code_block.js";
import { el } from "./element.js";
import { highlight } from "./highlight.js";
import { inline, LONGEST, mentions, seam } from "./inline.js";
import { load, mathml } from "./maths.js";
import { harmless } from "./sanitise.js";
import { finished } from "./unfinished.js";
import { gettext } from "./words.js";

export { ours } from "./sanitise.js";

// Blocks in a section. Each formula is a box that scrolls, which costs every frame something: sections with formulas are
// left out of style, layout and paint while they are out of view (markdown.css). Others would cost more by it than without.
const SECTION = 16;
const CERTAIN = 64; // characters of a line after which it is known what the line is

/** What an element must be to show a block. */
function shape({ kind, level = "", ordered = "", start = "", head = "", align = "" }) {
  return [kind, level, ordered, start, head, kind === "cell" ? align : ""].join(" ");
}

/** The element of a block: with its content's place in it, and what is in there. */
function make(block) {
  switch (block.kind) {
    case "code":
      return codeBlock();
    case "table": {
      const [head, body] = [el("thead"), el("tbody")];
      // It scrolls sideways, so that the keyboard must reach it.
      const box = { className: "table-box", tabIndex: 0, aria: { role: "group", label: gettext("Table") } };
      return { element: el("div", box, el("table", { dir: "auto" }, head, body)), head, content: body };
    }
    case "list":
      return of(block.ordered ? el("ol", { start: block.start, dir: "auto" }) : el("ul", { dir: "auto" }));
    case "cell": {
      const cell = block.head ? el("th", { scope: "col" }) : el("td");
      if (block.align) cell.className = block.align;
      return of(cell);
    }
    case "maths":
      return of(el("div", { className: "maths", tabIndex: 0, aria: { role: "group", label: gettext("Formula") } }));
    case "heading":
      return of(el(`h${block.level}`));
    default:
      return of(el({ paragraph: "p", quote: "blockquote", item: "li", row: "tr", rule: "hr" }[block.kind]));
  }
}

const of = (element) => ({ element, content: element });

/** Give `old` the children of `wanted`, from its child number `from` on; `isAll`: and no more. What is there already stays,
    and with it what a reader has selected. */
function match(old, wanted, from = 0, isAll = true) {
  const nodes = [...wanted.childNodes];
  nodes.forEach((node, i) => {
    const there = old.childNodes[from + i];
    if (!there) old.append(node);
    else if (there.isEqualNode(node)) return;
    else if (there.nodeType === Node.TEXT_NODE && node.nodeType === Node.TEXT_NODE) extend(there, node.data);
    else if (there.cloneNode().isEqualNode(node.cloneNode())) match(there, node);
    else there.replaceWith(node);
  });
  while (isAll && old.childNodes.length > from + nodes.length) old.lastChild.remove();
}

function extend(there, data) {
  if (data.startsWith(there.data)) there.appendData(data.slice(there.length));
  else there.data = data;
}

export class Markdown {
  /** `element` shows it from now on. */
  constructor(element) {
    this.element = element;
    this.text = "";
    this.isEnded = false;
    this.read = 0; // characters that inline.js was given, for tests
    this.root = { element, content: element, children: [], isInSections: true };
    this.start();
    element.replaceChildren();
    element.classList.add("markdown");
  }

  start() {
    this.at = 0; // so much of the text are whole lines that are read
    this.blocks = new Blocks();
    this.blocks.root.view = this.root;
    this.leaves = []; // those that are closed and may mention a link that is yet to be defined
    this.isRead = false;
  }

  /** Have draw() read all of it anew, since words of it mean something else by now; what is equal stays. */
  again() {
    forget(this.root);
    this.start();
  }

  /** The whole text so far, drawn at once. */
  show(text) {
    this.set(text);
    this.draw();
  }

  /** The whole text so far, for draw(); `isEnded`: nothing more comes. */
  set(text, isEnded = false) {
    if (this.isRead || !text.startsWith(this.text.slice(0, this.at))) {
      if (text === this.text && isEnded === this.isEnded) return;
      this.start(); // another text; what is equal stays all the same
    }
    this.text = text;
    this.isEnded = isEnded;
  }

  /** Draw on, until a time of performance.now(). Returns whether all is drawn. */
  draw(until = Infinity) {
    const isLate = () => performance.now() >= until;
    if (this.isRead) return this.settle(isLate, false) && this.trimAll();
    this.blocks.takeBack();
    for (;;) {
      if (!this.settle(isLate, false)) return false;
      const end = this.text.indexOf("\n", this.at);
      if (end < 0) break;
      this.blocks.line(this.text.slice(this.at, end));
      this.at = end + 1;
      if (isLate()) return false; // it was drawn on by a line at least
    }
    const rest = this.text.slice(this.at);
    if (this.isEnded) this.end(rest);
    else this.blocks.tail(rest);
    return this.settle(isLate, !this.isEnded) && this.trimAll();
  }

  end(rest) {
    if (rest) this.blocks.line(rest);
    this.blocks.end();
    this.isRead = true;
    for (const leaf of this.leaves) {
      if (!mentions(leaf.text, this.blocks.definitions)) continue;
      leaf.view.frozen = "";
      leaf.view.kept = 0;
      this.blocks.changed.add(leaf);
    }
  }

  /** Draw the blocks that have changed. `isTail`: the end of the text, as it is for now. */
  settle(isLate, isTail) {
    const { changed } = this.blocks;
    for (const block of changed) {
      this.place(block);
      if (block.children) {
        if (block.isTask !== undefined) block.view.element.classList.toggle("task", block.isTask);
        if (block.closed) trim(block);
      } else if (!this.write(block, isLate, isTail)) return false;
      changed.delete(block);
      if (changed.size && !isTail && isLate()) return false;
    }
    return true;
  }

  /** Give a block its element: the one that is in its place already, if it fits. */
  place(block) {
    const { view: parent } = block.parent;
    const there = parent.children[block.index];
    const wanted = shape(block);
    if (block.view?.shape === wanted && block.view === there) return;
    if (block.view?.shape !== wanted) {
      block.view = there?.shape === wanted ? there : Object.assign(make(block), { shape: wanted, children: [], frozen: "", kept: 0 });
    }
    if (block.view === there) return;
    parent.children[block.index] = block.view;
    if (there) there.element.replaceWith(block.view.element);
    else room(parent, block).append(block.view.element);
    if (block.kind === "maths") block.view.element.closest(".markdown > *").classList.add("formulas");
  }

  /** Returns whether all that can be drawn of it is. */
  write(block, isLate, isTail) {
    const { view, text } = block;
    if (block.kind === "code") {
      if (isTail || block.closed || text.length - view.frozen.length > 4000) writeCode(view, block);
      if (block.closed && !isTail) highlight(view, block);
    } else if (block.kind === "maths") {
      if (isTail || block.closed) writeMaths(view, block);
    } else if (text !== undefined) return this.writeWords(block, isLate, isTail);
    return true;
  }

  writeWords(block, isLate, isTail) {
    const { view, text } = block;
    if (!text.startsWith(view.frozen)) {
      view.frozen = "";
      view.kept = 0;
    }
    const { definitions } = this.blocks;
    while (text.length - view.frozen.length > LONGEST + CERTAIN) {
      const from = view.frozen.length;
      const end = from + seam(text.slice(from, from + LONGEST));
      this.read += LONGEST + end - from;
      const nodes = inline(text.slice(from, end), definitions);
      const upto = view.kept + nodes.childNodes.length;
      match(view.content, nodes, view.kept, false); // what stands behind it for now is matched with what follows
      view.kept = upto;
      view.frozen = text.slice(0, end);
      if (isLate()) return false;
    }
    if (!block.closed && !isTail) return true; // its end will change
    const rest = text.slice(view.frozen.length);
    this.read += rest.length;
    match(view.content, inline(isTail ? finished(rest) : rest, definitions), view.kept);
    if (block.closed && !isTail && !this.isRead && text.includes("]")) this.leaves.push(block);
    return true;
  }

  /** What stands behind the end of the text was for a tail that is no more. */
  trimAll() {
    this.blocks.open.forEach(trim);
    return true;
  }
}

/** Where a new block is put, behind those that are there. */
function room(parent, { kind, head, index }) {
  if (kind === "row" && head) return parent.head;
  if (!parent.isInSections) return parent.content;
  const { children } = parent.content;
  const at = Math.floor(index / SECTION);
  return children[at] ?? parent.content.appendChild(el("div"));
}

/** Of code nothing: that means what it meant. */
function forget(view) {
  if (!view.language) Object.assign(view, { frozen: "", kept: 0 });
  view.children.forEach(forget);
}

function trim({ view, children }) {
  if (!children) return;
  for (const { element } of view.children.splice(children.length)) {
    const { parentElement } = element;
    element.remove();
    if (view.isInSections && !parentElement.hasChildNodes()) parentElement.remove();
  }
}

function writeMaths({ content }, { text, closed, mark }) {
  if (!closed) load();
  const html = closed ? mathml(text, true) : undefined;
  if (html) match(content, harmless(html));
  else if (html === "") content.replaceChildren(el("code", {}, mark + text + (mark === "$$" ? "$$" : "\\]")));
  else content.replaceChildren(el("code", {}, text.trim()));
}
