/** The block structure of a Markdown text: CommonMark's way, one line after the other, so that each line is read once.

A block is {kind, parent, index, children, closed} and what its kind adds: `text` of what has text, `level` of a heading,
`ordered`, `mark` and `start` of a list, `align` of a table, `head` of its row, `language` of code, `isTask` of an item. */

import { cells, DEFINITION, DELIMITERS, ENDS, FENCE, HEADING, indent, isBlank, MARKER, MATHS, normal, QUOTE, RULE, UNDECIDED, untab } from "./lines.js";

const DEEPEST = 20; // blocks in each other; what is nested more deeply is text
const WIDEST = 100; // columns; what has more is no table
const LONGEST_MATHS = 4000; // characters; what goes on for longer is no formula

export class Blocks {
  constructor() {
    this.root = { kind: "root", children: [], closed: false };
    this.open = [this.root]; // from the outermost to the one that the next line may go on with
    this.changed = new Set(); // blocks that are new, have more text, or were closed
    this.definitions = new Map(); // of links, by label
    this.before = null; // what was open before the tail was read
  }

  get tip() {
    return this.open.at(-1);
  }

  /** Read a whole line, without its end. */
  line(source) {
    this.read(untab(source), false);
  }

  /** Read the beginning of a line; it is taken back before the next is read. */
  tail(source) {
    this.before = this.open.map((block) => ({ block, fields: { ...block }, children: block.children?.length, last: block.children?.at(-1) }));
    if (source) this.read(untab(source), true);
    const { tip } = this;
    if (tip.kind === "paragraph" && tip.lines === 1 && /^\|/.test(tip.text)) this.toTable(cells(tip.text).map(() => ""));
    if (this.tip.parent) this.changed.add(this.tip);
  }

  takeBack() {
    if (!this.before) return;
    this.open = this.before.map(({ block }) => block);
    for (const { block, fields, children, last } of this.before) {
      Object.assign(block, fields);
      if (!block.children) continue;
      block.children.length = children;
      if (last) block.children[children - 1] = last;
    }
    this.changed.clear();
    this.before = null;
  }

  /** Nothing more comes. */
  end() {
    this.cut(1);
  }

  read(line, isTail) {
    let rest = line;
    let at = 1; // so many of those that are open go on with this line
    for (; at < this.open.length; at++) {
      const block = this.open[at];
      if (block.kind === "quote") {
        const marker = QUOTE.exec(rest);
        if (!marker) break;
        rest = untab(rest.slice(marker[0].length));
      } else if (block.kind === "item") {
        if (isBlank(rest)) {
          if (!block.children.length) break;
          continue;
        }
        const width = indent(rest);
        // By the book a list in a list stands below its item's text; models often indent it by two only.
        if (width < block.need && !(width >= block.least && MARKER.test(rest.slice(width)))) break;
        rest = rest.slice(Math.min(width, block.need));
      } else if (block.kind !== "list") break;
    }
    const leaf = this.open[at];
    if (leaf?.kind === "code" && this.goesOnCode(leaf, rest, isTail)) return;
    if (leaf?.kind === "maths" && this.goesOnMaths(leaf, rest)) return;
    if (isTail && UNDECIDED.test(rest)) return;
    this.begin(rest, at, isTail);
  }

  goesOnCode(code, rest, isTail) {
    if (!code.fence) {
      if (indent(rest) < 4 && !isBlank(rest)) return false;
      this.write(code, rest.slice(4) + "\n");
      return true;
    }
    const end = /^ {0,3}(`+|~+)[ \t]*$/.exec(rest);
    if (end?.[1][0] === code.fence[0]) {
      if (end[1].length >= code.fence.length) {
        this.close(this.open.pop());
        return true;
      }
      if (isTail) return true; // it may be about to end
    }
    this.write(code, rest.slice(Math.min(indent(rest), code.indent)) + (isTail ? "" : "\n"));
    return true;
  }

  goesOnMaths(maths, rest) {
    if (isBlank(rest) || maths.text.length > LONGEST_MATHS) {
      this.giveUp(maths);
      return false;
    }
    const end = ENDS[maths.mark];
    this.write(maths, "\n" + rest.replace(end, ""));
    if (end.test(rest)) this.close(this.open.pop());
    return true;
  }

  /** It was no formula after all. */
  giveUp(maths) {
    Object.assign(maths, { kind: "paragraph", text: maths.mark + maths.text, lines: 2 });
    this.changed.add(maths);
  }

  /** What a line begins, where `at` blocks go on. */
  begin(rest, at, isTail) {
    let isFresh = false; // nothing that was open before is open below
    const place = () => {
      if (this.open[at - 1].kind === "list") at--;
      this.cut(at);
    };
    for (;;) {
      if (isBlank(rest)) {
        if (!isFresh) this.cut(at);
        return;
      }
      const { tip } = this;
      const interrupts = !isFresh && this.open[at]?.kind === "paragraph";
      if (indent(rest) >= 4) {
        if (!isFresh && tip.kind === "paragraph") break;
        place();
        this.add({ kind: "code", text: "", language: "", fence: "" });
        this.write(this.tip, rest.slice(4) + "\n");
        return;
      }
      let found;
      const isShallow = this.open.length < DEEPEST;
      if (isShallow && (found = QUOTE.exec(rest))) {
        place();
        this.add({ kind: "quote", children: [] });
        rest = untab(rest.slice(found[0].length));
      } else if ((found = HEADING.exec(rest))) {
        place();
        const text = rest.slice(found[0].length).trim().replace(/(?:^|[ \t])#+$/, "").trim();
        this.addClosed({ kind: "heading", level: found[1].length, text });
        return;
      } else if ((found = FENCE.exec(rest))) {
        place();
        this.add({ kind: "code", text: "", language: isTail ? "" : found[2], fence: found[1], indent: indent(rest) });
        return;
      } else if ((found = MATHS.exec(rest))) {
        place();
        return this.beginMaths(rest.slice(found[0].length), found[1], rest, isTail);
      } else if (RULE.test(rest)) {
        place();
        this.addClosed({ kind: "rule" });
        return;
      } else if (isShallow && (found = MARKER.exec(rest))) {
        const isOrdered = found[1].length > 1;
        const number = isOrdered ? Number.parseInt(found[1], 10) : 0;
        let content = untab(rest.slice(found[0].length));
        if (interrupts && (isBlank(content) || (isOrdered && number !== 1))) break;
        const spaces = isBlank(content) || indent(content) > 4 ? 1 : indent(content);
        const mark = found[1].at(-1);
        const list = this.open[at - 1];
        if (list.kind === "list" && list.mark === mark) this.cut(at);
        else {
          place();
          this.add({ kind: "list", ordered: isOrdered, start: number, mark, children: [] });
        }
        this.add({ kind: "item", need: found[0].length + spaces, least: indent(rest) + 2, isTask: false, children: [] });
        rest = content.slice(Math.min(spaces, content.length));
      } else break;
      isFresh = true;
      at = this.open.length;
      if (isTail && UNDECIDED.test(rest)) return;
    }
    this.goOn(rest, at, place, isFresh, isTail);
  }

  beginMaths(text, mark, line, isTail) {
    const end = ENDS[mark];
    if (end.test(text)) {
      const formula = text.replace(end, "");
      if (formula.trim()) this.addClosed({ kind: "maths", text: formula, mark });
      return;
    }
    // With more behind the end of the formula it is one of a paragraph's.
    const isInline = text.includes(mark === "$$" ? "$$" : "\\]");
    if (isInline) this.add({ kind: "paragraph", text: line.trim(), lines: 1 });
    else this.add({ kind: "maths", text, mark });
    if (isTail) this.changed.add(this.tip);
  }

  /** A line of text. */
  goOn(rest, at, place, isFresh, isTail) {
    const { tip } = this;
    if (!isFresh && tip.kind === "paragraph") {
      if (tip.lines === 1 && this.open[at] === tip && DELIMITERS.test(rest) && this.becomesTable(rest)) return;
      tip.lines++;
      return this.write(tip, "\n" + rest.trim());
    }
    if (!isFresh && tip.kind === "table" && this.open[at] === tip) return this.row(tip, rest, false);
    place();
    const found = DEFINITION.exec(rest);
    if (found && !found[1].startsWith("^")) {
      const label = normal(found[1]);
      if (!isTail && !this.definitions.has(label)) {
        this.definitions.set(label, { href: found[2], title: found[3] ?? found[4] ?? found[5] });
      }
      return;
    }
    this.add({ kind: "paragraph", text: this.task(rest.trim()), lines: 1 });
  }

  /** An item's first line, with a sign for its box when it is a task. */
  task(text) {
    const box = /^\[([ xX])\](?=\s)/.exec(text);
    const item = this.tip;
    if (!box || item.kind !== "item" || item.children.length) return text;
    item.isTask = true;
    this.changed.add(item);
    return (box[1] === " " ? "☐" : "☑") + text.slice(3);
  }

  /** Whether the paragraph of one line that is open is the head of a table with these delimiters. */
  becomesTable(delimiters) {
    const columns = cells(delimiters);
    if (!this.tip.text.includes("|") || columns.length > WIDEST || cells(this.tip.text).length !== columns.length) return false;
    this.toTable(columns.map((column) => (column.endsWith(":") ? (column.startsWith(":") ? "center" : "right") : "")));
    return true;
  }

  toTable(align) {
    if (align.length > WIDEST) return;
    const head = this.open.pop();
    this.changed.delete(head);
    head.parent.children.length--;
    this.add({ kind: "table", align, children: [] });
    this.row(this.tip, head.text, true);
  }

  row(table, line, head) {
    const found = cells(line);
    this.add({ kind: "row", head, children: [] });
    table.align.forEach((align, i) => this.addClosed({ kind: "cell", head, align, text: found[i] ?? "" }));
    this.open.pop();
  }

  add(block) {
    const parent = this.tip;
    Object.assign(block, { parent, index: parent.children.length, closed: false });
    parent.children.push(block);
    this.open.push(block);
    this.changed.add(block);
  }

  addClosed(block) {
    this.add(block);
    this.close(this.open.pop());
  }

  write(block, text) {
    block.text += text;
    this.changed.add(block);
  }

  close(block) {
    if (block.kind === "code" && !block.fence) block.text = block.text.replace(/\n+$/, "\n");
    block.closed = true;
    this.changed.add(block);
  }

  /** Close all but the first `n`. */
  cut(n) {
    while (this.open.length > n) {
      const block = this.open.pop();
      if (block.kind === "maths") this.giveUp(block);
      this.close(block);
    }
  }
}

