/** Formulas in TeX as MathML, which needs no styles of its own. What makes it is larger than all else of the page, so it is
    fetched when there is a formula. */

const LONGEST = 4000; // characters
const KEPT = 500; // formulas: the same is asked for at each frame while the text behind it grows
const FORMULA = /\$\$|\\[([]|\$(?![\s$])[^$\n]*[^\s$\\]\$(?![0-9A-Za-z])/;
const AGAIN = 5000; // milliseconds after which it is fetched again when that failed
const SCRIPT = "./vendor/temml-0.13.5.js";
const known = new Map();
let temml = null;
let loading = null;
let tries = 0;
let next = 0; // the performance.now() from which on it is fetched, again where it failed
let missed = 0;
let isReady;

/** Resolves when formulas can be drawn. */
export const ready = new Promise((resolve) => (isReady = resolve));

/** Whether a text seems to have a formula. */
export const hasFormula = (text) => FORMULA.test(text);

/** Resolves when it is known whether formulas can be drawn for now. */
export function load() {
  if (performance.now() < next) return loading;
  next = Infinity;
  return (loading = fetchIt());
}

async function fetchIt() {
  const address = tries++ ? `${SCRIPT}?${tries}` : SCRIPT; // browsers may remember of a module that it could not be had
  try {
    ({ default: temml } = await import(address));
    isReady();
  } catch {
    next = performance.now() + AGAIN; // meanwhile they are shown as they were written
  }
}

addEventListener("online", () => {
  if (!loading || next === Infinity) return;
  next = 0;
  load();
});

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
