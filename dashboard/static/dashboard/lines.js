/** How the lines look with which Markdown's blocks begin, go on and end. */

export const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})[ \t]*([^\s`]*)/;
export const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
export const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
export const QUOTE = /^ {0,3}> ?/;
export const MARKER = /^ {0,3}([-+*]|\d{1,9}[.)])(?=[ \t]|$)/;
export const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
export const MATHS = /^ {0,3}(\$\$|\\\[)/;
export const DEFINITION = /^ {0,3}\[((?:[^[\]\\]|\\.){1,200})\]:[ \t]*<?([^\s<>]+)>?(?:[ \t]+(?:"([^"]*)"|'([^']*)'|\(([^)]*)\)))?[ \t]*$/;
/** How a formula ends that begins with this. */
export const ENDS = { $$: /\$\$\s*$/, "\\[": /\\\]\s*$/ };
/** The beginning of a line that may still become anything, as long as it is all that has come. */
export const UNDECIDED = /^[ \t]*(?:[-+*#|`~=_$\\:>][-+*#|`~=_:> \t]*|\d{1,2}[.)]?[ \t]*|\[[ xX]?\]?)$/;

export const isBlank = (line) => !/\S/.test(line);
export const indent = (line) => line.search(/[^ ]|$/);
/** A link's label as it is looked up. */
export const normal = (label) => label.trim().toLowerCase().replace(/\s+/g, " ");

/** Tabs before the text as spaces. */
export function untab(line) {
  if (!/^ *\t/.test(line)) return line;
  const width = line.search(/[^ \t]|$/);
  let spaces = 0;
  for (const character of line.slice(0, width)) spaces += character === "\t" ? 4 - (spaces % 4) : 1;
  return " ".repeat(spaces) + line.slice(width);
}

/** The cells of a table's line. */
export function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}
