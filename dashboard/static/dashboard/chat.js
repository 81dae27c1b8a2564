/** The chat page: sending, stopping, and following the answer that is on its way. */

import { put } from "./thread.js"; // first: it remembers the page as it came
import { Answer } from "./answer.js";
import { copyCode } from "./clipboard.js";
import { complain } from "./element.js";
import { drawAll } from "./painter.js";
import { post } from "./post.js";
import { Follower } from "./scroll.js";
import { keep, keepAll } from "./source.js";
import { Turns } from "./turns.js";
import { gettext } from "./words.js";

const $ = (id) => document.getElementById(id);
const [form, text, send, stop, messages, error] = ["composer", "text", "send", "stop", "messages", "error"].map($);
const view = new Follower($("scroll"), $("latest"));
let answer = null;
let sending = false;
let isGone = false; // the chat was deleted

function refresh() {
  stop.hidden = answer === null;
  send.hidden = answer !== null;
  send.disabled = sending || isGone;
  messages.toggleAttribute("data-busy", answer !== null);
}

function follow() {
  const element = messages.querySelector("[data-events]");
  if (answer && answer.element === element) return;
  if (answer && isOutOfSight(answer.element, element)) return element?.replaceWith(answer.element);
  answer?.leave();
  answer = null;
  if (!element) return refresh();
  stop.disabled = false;
  const its = (answer = new Answer(element, {
    painted: () => view.keep(),
    over() {
      keep(element, its.text);
      delete element.dataset.events;
      if (answer === its) answer = null;
      if (document.activeElement === stop) text.focus();
      refresh();
    },
  }));
  refresh();
}

/** Whether the answer that is followed is on no path that is shown, since another version is read meanwhile, or is now
    again. */
function isOutOfSight(followed, found) {
  if (followed.isConnected) return false;
  return found ? found.dataset.generation === followed.dataset.generation : !document.getElementById(followed.id);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (sending || isGone || answer !== null || !text.value.trim()) return;
  sending = true;
  complain(error, "");
  refresh();
  try {
    const fields = Object.fromEntries(new FormData(form));
    const after = [...messages.querySelectorAll(".message")].at(-1)?.dataset.message ?? ""; // what is answered is what is read
    const unreachable = gettext("The server can't be reached. Your text is still here; try again.");
    const reply = await post(form.action, { ...fields, after }, unreachable);
    text.value = "";
    text.dispatchEvent(new Event("input")); // its draft goes
    if (reply.url) return location.assign(reply.url);
    put(reply.after, reply.html);
    first(document.querySelector("#chat-list [aria-current]")?.parentElement);
    view.toEnd();
  } catch (problem) {
    complain(error, problem.message);
  }
  sending = false;
  refresh();
});

/** The list is newest first. */
function first(item) {
  item?.parentElement.prepend(item);
}

text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});

stop.addEventListener("click", async () => {
  stop.disabled = true;
  complain(error, "");
  try {
    await post(answer.stopUrl);
  } catch (problem) {
    stop.disabled = false;
    complain(error, problem.message);
  }
});

$("show-chats").addEventListener("click", (event) => {
  const open = $("chats").classList.toggle("open");
  event.currentTarget.setAttribute("aria-expanded", String(open));
});

/** Draw what is new, and follow what is on its way. */
function look() {
  keepAll(messages);
  drawAll(messages, () => view.keep());
  follow();
  view.look();
}

document.addEventListener("thread:changed", look);
document.addEventListener("chat:gone", ({ detail }) => {
  isGone = detail;
  refresh();
});

new Turns(messages, text, { complain: (message) => complain(error, message), isBusy: () => answer !== null, stop: () => stop.click(), toEnd: () => view.toEnd() });
copyCode(messages);
look();
view.toEnd();
