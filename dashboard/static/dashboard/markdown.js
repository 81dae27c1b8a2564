/** A model's Markdown as elements. Whatever it writes, nothing but a short list of harmless ones reaches the page. */

import DOMPurify from "./vendor/dompurify-3.5.0.js";
import { Marked } from "./vendor/marked-18.2.1.js";

const ALLOWED = {
  ALLOWED_TAGS: [
    "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "pre", "code", "strong", "em", "del", "a",
    "table", "thead", "tbody", "tr", "th", "td",
  ],
  ALLOWED_ATTR: ["href", "title", "start", "align"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (!node.hasAttribute?.("href")) return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
});

const marked = new Marked({
  gfm: true,
  breaks: true,
  // A tokenizer that returns nothing leaves its text to the others: tags are text, but for a line break.
  tokenizer: {
    html: () => undefined,
    tag: (source) => (/^<br\s*\/?>/i.test(source) ? false : undefined),
    lheading: () => undefined, // or a paragraph would be a headline until its list's first item is complete
  },
  renderer: {
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    image(token) {
      const text = token.text || token.href;
      return this.link({ ...token, tokens: [{ type: "text", raw: text, text }] }); // nothing is fetched unasked
    },
  },
});

/** Markup of this site's own templates as elements. */
export const ours = (html) => DOMPurify.sanitize(html, { RETURN_DOM_FRAGMENT: true });

/** The blocks of a text, each as HTML that is still to be sanitised. */
function blocks(text) {
  try {
    const tokens = marked.lexer(text).filter(({ type }) => type !== "space" && type !== "def");
    return tokens.map((token) => marked.parser([token]).trim().replaceAll(">\n<", "><"));
  } catch {
    const all = document.createElement("pre"); // nested more deeply than can be followed
    all.textContent = text;
    return [all.outerHTML];
  }
}

/** Give `old` the children of `wanted`. What is there already stays, and with it what a reader has selected. */
function match(old, wanted) {
  const nodes = [...wanted.childNodes];
  nodes.forEach((node, i) => {
    const there = old.childNodes[i];
    if (!there) old.append(node);
    else if (there.isEqualNode(node)) return;
    else if (there.nodeType === Node.TEXT_NODE && node.nodeType === Node.TEXT_NODE) extend(there, node.data);
    else if (there.cloneNode().isEqualNode(node.cloneNode())) match(there, node);
    else there.replaceWith(node);
  });
  while (old.childNodes.length > nodes.length) old.lastChild.remove();
}

function extend(there, data) {
  if (data.startsWith(there.data)) there.appendData(data.slice(there.length));
  else there.data = data;
}

export class Markdown {
  /** `element` shows it from now on. */
  constructor(element) {
    this.element = element;
    this.shown = []; // the HTML of each block, before it was sanitised
    element.replaceChildren();
    element.classList.add("markdown");
  }

  /** The whole text so far. Only the blocks that have changed are touched. */
  show(text) {
    const wanted = blocks(text);
    wanted.forEach((html, i) => {
      if (this.shown[i] === html) return;
      const block = this.element.children[i] ?? this.element.appendChild(document.createElement("div"));
      match(block, DOMPurify.sanitize(html, ALLOWED));
    });
    while (this.element.children.length > wanted.length) this.element.lastChild.remove();
    this.shown = wanted;
  }
}
