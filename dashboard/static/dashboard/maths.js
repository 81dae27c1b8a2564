/** Formulas in TeX as MathML, which needs no styles of its own. What makes it is larger than all else of the page, so it is
    fetched when there is a formula. */

const LONGEST = 4000; // characters
const KEPT = 500; // formulas: the same is asked for at each frame while the text behind it grows
const FORMULA = /\$\$|\\[([]|\$(?![\s$])[^$\n]*[^\s$\\]\$(?![0-9A-Za-z])/;
const known = new Map();
let temml = null;
let loading = null;
let missed = 0;

/** Whether a text seems to have a formula. */
export const hasFormula = (text) => FORMULA.test(text);

/** Resolves to whether formulas can be drawn, when that is known. */
export function load() {
  loading ??= import("./vendor/temml-0.13.5.js").then(
    ({ default: found }) => Boolean((temml = found)),
    () => false, // they are shown as they were written
  );
  return loading;
}

/** How many formulas were asked for before they could be drawn. */
export const missing = () => missed;

/** MathML that is still to be sanitised; "" for what is no formula, and undefined as long as that can't be told. */
export function mathml(tex, displayMode) {
  if (!temml) {
    missed++;
    load();
    return undefined;
  }
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
