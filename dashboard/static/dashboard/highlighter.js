/** The worker that finds the colours of code. It is told {language, pieces} and answers, for each piece, a list
    [length, class, length, class, …], or null for a language that it doesn't know. */

import hljs from "./vendor/highlight-11.12.0.js";

const PARTS = /<span class="([^"]*)">|<\/span>|&(?:amp|lt|gt|quot|#x27);|[^<&]+/g;

onmessage = ({ data: { language, pieces } }) => {
  if (!hljs.getLanguage(language)) return postMessage(null);
  const { value } = hljs.highlight(pieces.join(""), { language, ignoreIllegals: true });
  postMessage(cut(runs(value), pieces));
};

/** Markup as [length, class] of each run of characters. */
function runs(markup) {
  const found = [];
  const inside = [];
  for (const [part, name] of markup.matchAll(PARTS)) {
    if (name !== undefined) inside.push(name);
    else if (part === "</span>") inside.pop();
    else {
      const length = part[0] === "&" ? 1 : part.length;
      const of = inside.at(-1) ?? "";
      const last = found.at(-1);
      if (last?.[1] === of) last[0] += length;
      else found.push([length, of]);
    }
  }
  return found;
}

/** The runs of each piece. */
function cut(all, pieces) {
  let i = 0;
  return pieces.map(({ length }) => {
    const of = [];
    for (let left = length; left > 0 && i < all.length; ) {
      const taken = Math.min(left, all[i][0]);
      of.push(taken, all[i][1]);
      left -= taken;
      all[i][0] -= taken;
      if (!all[i][0]) i++;
    }
    return of;
  });
}
