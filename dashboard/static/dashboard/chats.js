/** The list of chats and the head of the open one: what is done with a chat as a whole. */

import { offerAgain, remove } from "./bin.js";
import { get } from "./get.js";
import { ours } from "./markdown.js";
import { Menu } from "./menu.js";
import { openSearch } from "./search.js";
import { openSettings } from "./settings.js";
import { openShares } from "./share_links.js";
import { shortcuts } from "./shortcuts.js";
import { itemOf, rename } from "./titles.js";
import { toast } from "./toast.js";

const $ = (id) => document.getElementById(id);
const list = $("chat-list");
const more = $("more-chats");
const current = $("main").dataset.chat;

/** The chat that a button or a link is about. */
const chatOf = (element) => element?.closest("[data-chat]")?.dataset.chat ?? "";

/** Do one of the menu's things with a chat; `from` has the focus before and after. */
function act(what, pk, from) {
  const item = from.closest("li");
  if (what === "rename") rename(pk, item ? item.querySelector("a") : document.querySelector(".bar h1"), from);
  else if (what === "settings") openSettings(pk);
  else if (what === "share") openShares(pk);
  else if (what === "delete") remove(pk);
  else if (what === "export") location.assign(`/chats/${pk}/chat.md`);
}

new Menu($("chat-menu"), {
  opened(button) {
    for (const link of $("chat-menu").querySelectorAll("[data-file]")) link.href = `/chats/${chatOf(button)}/${link.dataset.file}`;
  },
  chosen: (what, button) => act(what, chatOf(button), button),
});

$("open-search").addEventListener("click", openSearch);
$("open-settings").addEventListener("click", () => openSettings(current));
$("open-share")?.addEventListener("click", () => openShares(current));

/** List items of the server's markup. */
function items(html) {
  const found = [...ours(html).querySelectorAll("li")];
  for (const link of found.flatMap((item) => [...item.querySelectorAll("a")])) for (const name of ["target", "rel"]) link.removeAttribute(name);
  return found;
}

more.addEventListener("click", async () => {
  more.disabled = true;
  try {
    const reply = await get(`/chats/more?after=${encodeURIComponent(more.dataset.after)}`);
    const found = items(reply.html).filter((item) => !itemOf(item.dataset.chat));
    for (const item of found) item.dataset.older = "";
    list.append(...found);
    more.dataset.after = reply.more;
    more.hidden = !reply.more;
    found[0]?.querySelector("a").focus();
  } catch (problem) {
    toast(problem.message);
  }
  more.disabled = false;
});

list.addEventListener("keydown", (event) => {
  const item = event.target.closest("li");
  if (event.target.matches("input") || !item) return;
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  if (step) item[step]?.querySelector("a")?.focus();
  else if (event.key === "F2") act("rename", chatOf(item), item.querySelector("a"));
  else if (event.key === "Delete") remove(chatOf(item));
  else return;
  event.preventDefault();
  event.stopPropagation();
});

shortcuts({
  search: openSearch,
  new: () => location.assign("/"),
  settings: () => openSettings(current),
  ...(current && {
    rename: () => act("rename", current, $("chat-more")),
    share: () => openShares(current),
    export: () => act("export", current, $("chat-more")),
    delete: () => remove(current),
  }),
});
offerAgain();
