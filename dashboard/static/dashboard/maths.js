/** Formulas in TeX as MathML, which needs no styles of its own. */

import temml from "./vendor/temml-0.13.5.js";

const LONGEST = 4000; // characters
const KEPT = 500; // formulas: the same is asked for at each frame while the text behind it grows
const known = new Map();

/** MathML that is still to be sanitised; "" for what is no formula. */
export function mathml(tex, displayMode) {
  const key = (displayMode ? "=" : "-") + tex;
  if (!known.has(key)) {
    if (known.size >= KEPT) known.delete(known.keys().next().value);
    known.set(key, tex.length > LONGEST ? "" : render(tex, displayMode));
  }
  return known.get(key);
}

function render(tex, displayMode) {
  try {
    const html = temml.renderToString(tex.trim(), { displayMode, throwOnError: true, trust: false, maxExpand: 200, maxSize: [20, 20] });
    return html.replace(/ style="[^"]*"/g, ""); // the content security policy allows none
  } catch {
    return "";
  }
}
