/** A chat's title, wherever the page shows it, and the field in which it is edited. */

import { el } from "./element.js";
import { post } from "./post.js";
import { toast } from "./toast.js";
import { fill, gettext } from "./words.js";

const main = document.getElementById("main");

export const itemOf = (pk) => document.querySelector(`#chat-list [data-chat="${pk}"]`);

const titleOf = (pk) => (itemOf(pk)?.querySelector(".title") ?? document.querySelector(".bar h1")).textContent;

/** Write a title everywhere. */
function showTitle(pk, title) {
  const item = itemOf(pk);
  if (item) {
    item.querySelector(".title").textContent = title;
    item.querySelector(".chat-more").setAttribute("aria-label", fill(gettext("Menu of %(title)s"), { title }));
  }
  if (String(pk) !== main.dataset.chat) return;
  const before = document.querySelector(".bar h1").textContent;
  document.querySelector(".bar h1").textContent = title;
  document.title = document.title.includes(before) ? document.title.replace(before, () => title) : `${title} · Berth`;
}

/** Edit a chat's title in the place of `shown`, beside which the field is put. Enter and leaving the field keep it,
    Escape does not; the focus goes to `after`. */
export function rename(pk, shown, after) {
  const item = shown.closest("li");
  const before = titleOf(pk);
  const field = el("input", { className: "title-field", value: before, maxLength: 200, aria: { label: gettext("Name of the chat") } });
  let over = false;

  function close(isToReturn) {
    over = true;
    field.remove();
    shown.hidden = false;
    item?.removeAttribute("data-editing");
    if (isToReturn) after.focus();
  }

  async function keep(isToReturn) {
    if (over) return;
    const title = field.value.trim();
    close(isToReturn);
    if (title === before) return;
    try {
      showTitle(pk, (await post(`/chats/${pk}/title`, { title })).title);
    } catch (problem) {
      toast(problem.message);
    }
  }

  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter") keep(true);
    else if (event.key === "Escape") close(true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  field.addEventListener("blur", () => keep(false));
  item?.setAttribute("data-editing", "");
  shown.hidden = true;
  shown.after(field);
  field.focus();
  field.setSelectionRange(0, before.length, "backward");
  field.scrollLeft = 0; // its beginning is seen
}
