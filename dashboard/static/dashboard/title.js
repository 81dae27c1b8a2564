/** The tab's title: a chat that is paused says so, to somebody in another tab too; and if not this one, how many others are. */

import { fill, gettext, ngettext } from "./words.js";

const SAID = {
  paused: gettext("Paused · %(title)s"),
  held: gettext("Held · %(title)s"),
  moving: gettext("Moving · %(title)s"),
};

const { chat } = document.getElementById("main").dataset;
const heading = document.querySelector(".bar h1");
const first = { title: document.title, heading: heading.textContent };
let state = "";
let others = 0; // chats that are not open here and do not go on for now

function paint() {
  const name = heading.textContent === first.heading ? first.title : `${heading.textContent} · Berth`;
  const title = said(name);
  if (document.title !== title) document.title = title;
}

function said(title) {
  if (SAID[state]) return fill(SAID[state], { title });
  if (others) return fill(ngettext("%(n)s chat paused · %(title)s", "%(n)s chats paused · %(title)s", others), { n: others, title });
  return title;
}

function become(next) {
  state = next ?? "";
  paint();
}

document.documentElement.dataset.ownTitle = ""; // nobody else writes it
document.addEventListener("answer:state", ({ detail }) => become(detail.state));
document.addEventListener("feed:chats", ({ detail: { chats } }) => {
  others = Object.entries(chats).filter(([pk, { state }]) => pk !== chat && state in SAID).length;
  if (document.hidden) state = chats[chat]?.state ?? "";
  paint();
});
new MutationObserver(paint).observe(heading, { childList: true, characterData: true, subtree: true });
