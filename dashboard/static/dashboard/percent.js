/** A share as people read it, by one rule everywhere: rounded, but "0 %" is nothing and "100 %" is all. */
export function percent(part, whole) {
  if (!whole) return "–";
  if (part <= 0 || part >= whole) return part > 0 ? "100 %" : "0 %";
  return `${Math.min(99, Math.max(1, Math.round((100 * part) / whole)))} %`;
}
