/** The list of chats shows which are being answered, and how far they are. */

import { WORDS } from "./states.js";

const list = document.getElementById("chat-list");
let chats = {};
let own = null; // the state of the answer that this page follows, which knows it first

function paint() {
  for (const item of list.querySelectorAll("[data-chat]")) {
    const badge = item.querySelector(".chat-state");
    const isOwn = item.querySelector("[aria-current]");
    const state = (isOwn && own) || chats[item.dataset.chat]?.state || "";
    const word = WORDS[state] ?? "";
    if (badge.dataset.state !== state) badge.dataset.state = state;
    if (badge.textContent !== word) badge.textContent = word;
  }
}

document.addEventListener("feed:chats", ({ detail }) => {
  ({ chats } = detail);
  paint();
});
document.addEventListener("answer:state", ({ detail }) => {
  own = detail.state === "resumed" ? "writing" : detail.state;
  paint();
});
new MutationObserver(paint).observe(list, { childList: true });
