/** The links by which others read a chat: made, copied, taken back. */

import { copy } from "./clipboard.js";
import { complain, el } from "./element.js";
import { get } from "./get.js";
import { post } from "./post.js";
import { toast } from "./toast.js";
import { fill, gettext, locale } from "./words.js";

const $ = (id) => document.getElementById(id);
const [dialog, list, said, error, make] = ["share", "share-links", "share-said", "share-error", "share-new"].map($);
let chat = "";

export async function openShares(pk) {
  try {
    show((await get(`/chats/${pk}/shares`)).links);
  } catch (problem) {
    return toast(problem.message);
  }
  chat = pk;
  said.textContent = "";
  complain(error, "");
  dialog.showModal();
}

function show(links) {
  list.replaceChildren(...links.map(row));
}

function row({ url, created_at, revoke }) {
  const when = new Date(created_at).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" });
  const field = el("input", { value: url, readOnly: true, aria: { label: fill(gettext("Link of %(when)s"), { when }) } });
  field.addEventListener("focus", () => field.select());
  const copier = el("button", { type: "button", className: "button button--small" }, gettext("Copy"));
  copier.addEventListener("click", async () => {
    if (await copy(url)) return say(gettext("Copied."));
    field.focus(); // which selects it
    say(gettext("Copy it with your keyboard: it is selected."));
  });
  const back = el("button", { type: "button", className: "button button--small" }, gettext("Take back"));
  back.addEventListener("click", () => change(revoke, gettext("Taken back. The link opens nothing any more."), make));
  for (const button of [copier, back]) button.setAttribute("aria-label", `${button.textContent}: ${when}`);
  const made = el("span", { className: "hint" }, fill(gettext("made on %(when)s"), { when }));
  return el("li", {}, field, el("div", { className: "link-acts" }, made, copier, back));
}

function say(words) {
  complain(error, "");
  said.textContent = words;
}

async function change(url, words, focused) {
  make.disabled = true;
  try {
    show((await post(url)).links);
    say(words);
  } catch (problem) {
    said.textContent = "";
    complain(error, problem.message);
  }
  make.disabled = false;
  (focused ?? list.querySelector("button") ?? make).focus();
}

make.addEventListener("click", () => change(`/chats/${chat}/shares`, gettext("Made. Whoever has the link can read the chat as it is now.")));
$("share-close").addEventListener("click", () => dialog.close());
