/** Search over one's chats: hits come as one types, arrows walk through them. */

import { el } from "./element.js";
import { get } from "./get.js";
import { jump } from "./jump.js";
import { fill, gettext, ngettext } from "./words.js";

const PAUSE_MS = 200; // without a key, before the server is asked
const LEAST = 2; // characters
const ENOUGH = 50; // hits that are shown before one is asked whether to go on
const $ = (id) => document.getElementById(id);
const [dialog, term, said, hits, more] = ["search", "search-term", "search-said", "search-hits", "search-more"].map($);
let timer = 0;
let pending = Promise.resolve();
let asking = new AbortController();

export function openSearch() {
  dialog.showModal();
  term.focus();
  term.select();
}

const marked = ([before, hit, after]) => [before, el("mark", {}, hit), after];

function row({ chat, title, text, url, role }) {
  const line = title ? marked(title) : [chat];
  const whose = role === "user" ? gettext("You") : gettext("Answer");
  const snippet = text ? [el("span", { className: "hit-text" }, el("span", { className: "hit-who" }, `${whose}: `), ...marked(text))] : [];
  return el("li", {}, el("a", { href: url }, el("span", { className: "hit-chat" }, ...line), ...snippet));
}

/** Show what holds the term, from `after` on: the server is asked until there is enough to look at, or no more. */
async function search(after = "") {
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const wanted = term.value.trim();
  if (!after) hits.replaceChildren();
  more.hidden = true;
  said.textContent = wanted.length < LEAST ? (wanted ? gettext("Type two characters or more.") : "") : gettext("Searching…");
  if (wanted.length < LEAST) return;
  const enough = hits.childElementCount + ENOUGH;
  try {
    do {
      const found = await get(`/chats/search?${new URLSearchParams({ q: wanted, after })}`, { signal });
      hits.append(...found.hits.map(row));
      after = found.more;
    } while (after && hits.childElementCount < enough);
    more.hidden = !after;
    more.dataset.after = after;
    const n = hits.childElementCount;
    said.textContent = n ? fill(ngettext("%(n)s hit", "%(n)s hits", n), { n }) : gettext("Nothing found.");
  } catch (problem) {
    if (!signal.aborted) said.textContent = problem.message;
  }
}

/** Ask for what was typed, unless that is done; resolves when its hits are there. */
function catchUp() {
  if (timer) pending = search();
  clearTimeout(timer);
  timer = 0;
  return pending;
}

term.addEventListener("input", () => {
  clearTimeout(timer);
  asking.abort(); // what comes for another term is not shown
  said.textContent = "";
  timer = setTimeout(catchUp, PAUSE_MS);
});

more.addEventListener("click", async () => {
  const first = hits.childElementCount;
  await search(more.dataset.after);
  hits.children[first]?.querySelector("a").focus();
});

dialog.addEventListener("keydown", (event) => {
  const links = [...hits.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "Enter" && event.target === term) catchUp().then(() => hits.querySelector("a")?.click());
  else if (event.key === "ArrowDown") links[at + 1]?.focus();
  else if (event.key === "ArrowUp") (links[at - 1] ?? term).focus();
  else if (event.key === "Escape") dialog.close(); // in a field that searches it would only clear the field
  else return;
  event.preventDefault();
});

// On this very page the dialog goes, once the address is the hit's.
hits.addEventListener("click", ({ target }) => {
  if (target.closest("a")?.pathname !== location.pathname) return;
  setTimeout(() => {
    dialog.close();
    jump();
  });
});
