/** The end of a text that is still being written, with its markers closed for now, so that none is seen. */

const TRAILING = /(?:\*{1,3}|_{1,3}|~{1,2}|`{1,2}|!?\[|\\)$/; // they may be the first half of something
const MARKERS = /\\[^]|`+|\*+|_+|~~|\$\$?|!?\[|\]/g;
const SHORT = 300; // characters in which a link or a formula is expected to end
const WORD = /[\p{L}\p{N}]/u;

/** `text` as it would be if it ended well. */
export function finished(text) {
  text = text.replace(TRAILING, "");
  const open = []; // emphasis: {mark, n}
  const labels = []; // where the brackets are that are open
  MARKERS.lastIndex = 0;
  for (let found; (found = MARKERS.exec(text)); ) {
    const [mark] = found;
    const at = found.index;
    const end = at + mark.length;
    if (mark[0] === "`") {
      const close = closing(text, mark, end);
      if (close < 0) return shut(text, open, mark);
      MARKERS.lastIndex = close + mark.length;
    } else if (mark === "\\(" || mark === "\\[" || mark[0] === "$") {
      if (mark[0] === "$" && end === text.length) return shut(text.slice(0, at), open);
      if (mark[0] === "$" && !/[^\s\d]/.test(text[end] ?? "")) continue; // a price
      const closer = mark === "\\(" ? "\\)" : mark === "\\[" ? "\\]" : mark;
      const close = text.indexOf(closer, end);
      if (close >= 0) MARKERS.lastIndex = close + closer.length;
      else if (text.length - at < SHORT) return shut(text.slice(0, at), open);
    } else if (mark[0] === "*" || mark[0] === "_" || mark === "~~") {
      emphasis(open, mark, text[at - 1] ?? " ", text[end] ?? " ");
    } else if (mark === "]") {
      const label = labels.pop();
      if (label === undefined || (text[end] ?? "(") !== "(") continue;
      const close = text.indexOf(")", end);
      if (close >= 0) MARKERS.lastIndex = close + 1;
      else if (text.length - end < 2000) return shut(without(text.slice(0, at), label), open);
    } else if (mark[0] !== "\\") labels.push(at);
  }
  const label = labels.at(-1);
  return shut(label !== undefined && text.length - label < SHORT ? without(text, label) : text, open);
}

/** Where a run of backticks comes again, just as long. */
function closing(text, run, from) {
  for (let at = from; (at = text.indexOf(run, at)) >= 0; ) {
    let end = at;
    while (text[end] === "`") end++;
    if (end - at === run.length) return at;
    at = end;
  }
  return -1;
}

function emphasis(open, run, before, after) {
  const mark = run[0];
  let n = run.length;
  const isInside = mark === "_" && WORD.test(before) && WORD.test(after);
  if (/\S/.test(before) && !isInside) {
    for (let i = open.length - 1; i >= 0 && n > 0; i--) {
      if (open[i].mark !== mark) continue;
      const closed = Math.min(n, open[i].n);
      n -= closed;
      open[i].n -= closed;
      open.splice(open[i].n ? i + 1 : i);
    }
  }
  if (n > 0 && n <= 3 && /\S/.test(after) && !isInside) open.push({ mark, n });
}

/** A link's text without what makes it one. */
const without = (text, label) => text.slice(0, label) + text.slice(label + (text[label] === "!" ? 2 : 1));

/** The text with what is open closed, before the spaces at its end, where it would close nothing. */
function shut(text, open, code = "") {
  const bare = code ? text : text.trimEnd();
  const marks = open.map(({ mark, n }) => mark.repeat(n)).reverse();
  // Between a marker and its end must be something.
  if (!code && marks.length && /[*_~]$/.test(bare)) return bare.replace(/[*_~]+$/, "");
  return bare + code + marks.join("");
}
