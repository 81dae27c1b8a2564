/** The links by which others read a chat: made, copied, taken back. */

import { el } from "./element.js";
import { get } from "./get.js";
import { post } from "./post.js";
import { toast } from "./toast.js";
import { fill, gettext } from "./words.js";

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
  complain("");
  dialog.showModal();
}

function complain(message) {
  error.textContent = message;
  error.hidden = !message;
}

function show(links) {
  list.replaceChildren(...links.map(row));
}

function row({ url, created_at, revoke }) {
  const when = new Date(created_at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const field = el("input", { value: url, readOnly: true, aria: { label: fill(gettext("Link of %(when)s"), { when }) } });
  field.addEventListener("focus", () => field.select());
  const copy = el("button", { type: "button", className: "button button--small" }, gettext("Copy"));
  copy.addEventListener("click", async () => say((await copied(field)) ? gettext("Copied.") : gettext("Copy it with your keyboard: it is selected.")));
  const back = el("button", { type: "button", className: "button button--small" }, gettext("Take back"));
  back.addEventListener("click", () => change(revoke, gettext("Taken back. The link opens nothing any more."), make));
  for (const button of [copy, back]) button.setAttribute("aria-label", `${button.textContent}: ${when}`);
  const made = el("span", { className: "hint" }, fill(gettext("made on %(when)s"), { when }));
  return el("li", {}, field, el("div", { className: "link-acts" }, made, copy, back));
}

function say(words) {
  complain("");
  said.textContent = words;
}

/** Whether it is on the clipboard; in any case it is selected. Outside the dialog nothing could be. */
async function copied(field) {
  field.focus();
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    return document.execCommand("copy"); // without TLS
  }
}

async function change(url, words, focused) {
  make.disabled = true;
  try {
    show((await post(url)).links);
    say(words);
  } catch (problem) {
    said.textContent = "";
    complain(problem.message);
  }
  make.disabled = false;
  (focused ?? list.querySelector("button") ?? make).focus();
}

make.addEventListener("click", () => change(`/chats/${chat}/shares`, gettext("Made. Whoever has the link can read the chat as it is now.")));
$("share-close").addEventListener("click", () => dialog.close());
