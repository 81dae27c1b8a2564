/** Numbers as people write them where the page's language is spoken. */

import { locale } from "./words.js";

const formats = new Map(); // decimals -> format

/** A number with so many decimals. */
export function number(value, decimals = 0) {
  if (!formats.has(decimals)) formats.set(decimals, new Intl.NumberFormat(locale, { minimumFractionDigits: decimals, maximumFractionDigits: decimals }));
  return formats.get(decimals).format(value);
}
