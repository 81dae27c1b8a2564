/** The one place where markup becomes elements. Whatever is in it, nothing but a short list of harmless ones comes out. */

import DOMPurify from "./vendor/dompurify-3.5.0.js";

const MATHML = [
  "math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot", "mstyle", "mpadded", "mphantom", "msub", "msup",
  "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mprescripts", "none", "mtable", "mtr", "mtd",
];
const OF_MATHML = [
  "display", "displaystyle", "scriptlevel", "mathvariant", "stretchy", "fence", "separator", "form", "lspace", "rspace", "minsize", "maxsize",
  "symmetric", "largeop", "movablelimits", "accent", "accentunder", "linethickness", "width", "height", "depth", "voffset", "columnspan", "rowspan",
];
const ALLOWED = {
  ALLOWED_TAGS: ["br", "code", "strong", "em", "del", "a", ...MATHML],
  ALLOWED_ATTR: ["href", "title", "class", ...OF_MATHML],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ADD_URI_SAFE_ATTR: OF_MATHML, // or their values would have to be such addresses
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};
const CLASSES = /^(?:tml-(?:display|left|right|jot|small|prime|(?:sml|med|lrg)-pad))$/; // what markdown.css knows of formulas

DOMPurify.addHook("afterSanitizeAttributes", (node, _, { ALLOWED_TAGS }) => {
  if (!ALLOWED_TAGS) return; // it is ours
  if (node.hasAttribute?.("class")) {
    const known = node.getAttribute("class").split(" ").filter((name) => CLASSES.test(name));
    if (known.length) node.setAttribute("class", known.join(" "));
    else node.removeAttribute("class");
  }
  if (!node.hasAttribute?.("href")) return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
});

// Set once: to read it anew at each call takes longer than the call.
DOMPurify.setConfig(ALLOWED);

/** What a model's words in a line may be. */
export const harmless = (html) => DOMPurify.sanitize(html);

/** Markup of this site's own templates as elements. */
export function ours(html) {
  DOMPurify.clearConfig();
  const nodes = DOMPurify.sanitize(html, { RETURN_DOM_FRAGMENT: true });
  DOMPurify.setConfig(ALLOWED);
  return nodes;
}
