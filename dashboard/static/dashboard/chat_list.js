/** The list of chats shows which are being answered, and how far they are. */

import { WORDS } from "./states.js";

const list = document.getElementById("chat-list");
let chats = {};
const over = new Set(); // the generations that this page has seen end, which the feed may still tell of
let own = null; // the state of the answer that this page follows, which knows it first

function paint() {
  for (const item of list.querySelectorAll("[data-chat]")) {
    const badge = item.querySelector(".chat-state");
    const isOwn = item.querySelector("[aria-current]");
    const told = chats[item.dataset.chat];
    const state = (isOwn && own) || (told && !over.has(told.generation) && told.state) || "";
    const word = WORDS[state] ?? "";
    if (badge.dataset.state !== state) badge.dataset.state = state;
    if (badge.textContent !== word) badge.textContent = word;
  }
}

document.addEventListener("feed:chats", ({ detail }) => {
  ({ chats } = detail);
  paint();
});
document.addEventListener("answer:over", ({ detail }) => {
  over.add(detail);
  paint();
});
document.addEventListener("answer:state", ({ detail }) => {
  own = detail.state === "resumed" ? "writing" : detail.state;
  paint();
});
new MutationObserver(paint).observe(list, { childList: true });
