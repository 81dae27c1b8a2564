/** Words in a line: emphasis, code, links, formulas. */

import { normal } from "./lines.js";
import { mathml } from "./maths.js";
import { harmless } from "./sanitise.js";
import { Marked } from "./vendor/marked-18.2.1.js";

// marked takes time with the square of the length of a line that means mischief, so that none is long.
export const LONGEST = 1000; // characters
const LEAST = 250;
const PLAIN = /^(?:[^\\`*_~[\]<>&$\n@:.]|[.:](?=[\s,;)\d]|$))*$/; // nothing in it could mean anything
const MAY_OPEN = /[*_~`[$\\<]/;
const MATHS = /^(?:\$\$([^$]+)\$\$|\$(?![\s$])((?:\\[^]|[^$\\\n])*)(?<!\s)\$(?![0-9A-Za-z])|\\\(([^]+?)\\\)|\\\[([^]+?)\\\])/;

const marked = new Marked({
  gfm: true,
  breaks: true,
  // A tokenizer that returns nothing leaves its text to the others: tags are text, but for a line break.
  tokenizer: { tag: (source) => (/^<br\s*\/?>/i.test(source) ? false : undefined) },
  renderer: {
    image(token) {
      const text = token.text || token.href;
      return this.link({ ...token, tokens: [{ type: "text", raw: text, text }] }); // nothing is fetched unasked
    },
  },
  extensions: [
    {
      name: "maths",
      level: "inline",
      start: (source) => /\$|\\[([]/.exec(source)?.index,
      tokenizer(source) {
        const found = MATHS.exec(source);
        if (!found) return undefined;
        const [raw, display, inline = found[3], , bracketed] = found;
        const html = mathml(display ?? inline ?? bracketed, inline === undefined) ?? undrawn(raw);
        return html ? { type: "maths", raw, html } : undefined;
      },
      renderer: ({ html }) => html,
    },
  ],
});

/** A formula that can't be drawn yet. */
const undrawn = (raw) => `<code>${raw.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)}</code>`;

function tokens(text, definitions) {
  const lexer = new marked.Lexer({ ...marked.defaults });
  lexer.tokens.links = Object.fromEntries(definitions);
  return lexer.inlineTokens(text);
}

/** A piece of text as nodes. `definitions` are those of links. */
export function inline(text, definitions) {
  if (PLAIN.test(text)) return plain(text);
  try {
    return harmless(marked.Parser.parseInline(tokens(text, definitions), marked.defaults));
  } catch {
    return plain(text); // nested more deeply than can be followed
  }
}

function plain(text) {
  const nodes = document.createDocumentFragment();
  if (text) nodes.append(text);
  return nodes;
}

/** Where a text that begins so may be cut in two that mean the same: a place between words, in nothing that is open.
    Depends on the first LONGEST characters alone, so that however a text came it is cut in the same places. */
export function seam(text) {
  const piece = text.slice(0, LONGEST);
  let best = 0;
  let at = 0;
  try {
    for (const { type, raw } of tokens(piece, new Map())) {
      if (type === "text") {
        const opener = raw.search(MAY_OPEN);
        const space = raw.slice(0, opener < 0 ? raw.length : opener).search(/\s\S*$/);
        if (space >= 0) best = at + space + 1;
        if (opener >= 0 && best >= LEAST) break;
      }
      at += raw.length;
    }
  } catch {
    best = 0;
  }
  if (best < LEAST) best = piece.search(/\s\S*$/) + 1;
  if (best < LEAST) best = LONGEST - (/[\uD800-\uDBFF]$/.test(piece) ? 1 : 0);
  return best;
}

/** Whether a text uses the label of a link that was defined later. */
export function mentions(text, definitions) {
  return (text.match(/\[[^[\]]{1,200}\]/g) ?? []).some((label) => definitions.has(normal(label.slice(1, -1))));
}
