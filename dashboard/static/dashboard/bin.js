/** Deleting a chat, and having it back. */

import { post } from "./post.js";
import { itemOf } from "./titles.js";
import { toast } from "./toast.js";
import { fill, gettext } from "./words.js";

const OFFERED_S = 30; // for which the way back is offered
const KEY = "berth:deleted"; // what was deleted on the page before this one
const main = document.getElementById("main");

/** Delete a chat, which is gone from the page at once. */
export async function remove(pk) {
  const item = itemOf(pk);
  const place = item && { list: item.parentElement, next: item.nextElementSibling };
  if (item) item.hidden = true;
  let title;
  try {
    ({ title } = await post(`/chats/${pk}/delete`));
  } catch (problem) {
    if (item) item.hidden = false;
    return toast(problem.message);
  }
  if (main.dataset.chat === String(pk)) {
    sessionStorage.setItem(KEY, JSON.stringify({ pk, title, until: Date.now() + OFFERED_S * 1000 }));
    return location.assign("/");
  }
  item?.remove();
  offer(pk, title, () => {
    if (!item) return location.assign(`/chats/${pk}/`);
    item.hidden = false;
    if (!itemOf(pk)) place.list.insertBefore(item, place.next?.isConnected ? place.next : null);
    itemOf(pk).querySelector("a").focus();
  });
}

function offer(pk, title, back, seconds = OFFERED_S) {
  const act = async () => {
    try {
      await post(`/chats/${pk}/restore`);
      back();
    } catch (problem) {
      toast(problem.message);
    }
  };
  const name = title.replace(/(?<!\.)\.$/, ""); // the sentence has a full stop of its own
  toast(fill(gettext("Deleted “%(title)s”."), { title: name }), { seconds, button: { label: gettext("Undo"), act } });
}

/** Offer the way back to the chat that was open until now. */
export function offerAgain() {
  const { pk, title, until } = JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
  const seconds = (until - Date.now()) / 1000;
  if (!(seconds > 0)) return;
  sessionStorage.removeItem(KEY);
  offer(pk, title, () => location.assign(`/chats/${pk}/`), seconds);
}
