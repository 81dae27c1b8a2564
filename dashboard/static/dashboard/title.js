/** The tab's title: a chat that is paused says so, to somebody in another tab too. */

import { fill, gettext } from "./words.js";

const SAID = {
  paused: gettext("Paused · %(title)s"),
  held: gettext("Held · %(title)s"),
  moving: gettext("Moving · %(title)s"),
};

const { chat } = document.getElementById("main").dataset;
const heading = document.querySelector(".bar h1");
const first = { title: document.title, heading: heading.textContent };
let state = "";

function paint() {
  const name = heading.textContent === first.heading ? first.title : `${heading.textContent} · Berth`;
  const title = SAID[state] ? fill(SAID[state], { title: name }) : name;
  if (document.title !== title) document.title = title;
}

function become(next) {
  state = next ?? "";
  paint();
}

document.documentElement.dataset.ownTitle = ""; // nobody else writes it
document.addEventListener("answer:state", ({ detail }) => become(detail.state));
document.addEventListener("feed:chats", ({ detail }) => document.hidden && become(detail.chats[chat]?.state));
new MutationObserver(paint).observe(heading, { childList: true, characterData: true, subtree: true });
