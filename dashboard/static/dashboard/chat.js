/** The chat page: sending, stopping, and following the answer that is on its way. */

import { Answer } from "./answer.js";
import { Markdown } from "./markdown.js";
import { post } from "./post.js";
import { Follower } from "./scroll.js";
import { keep, keepAll, sourceOf } from "./source.js";
import { Turns, put } from "./turns.js";

const $ = (id) => document.getElementById(id);
const [form, text, send, stop, messages, error] = ["composer", "text", "send", "stop", "messages", "error"].map($);
const view = new Follower($("scroll"), $("latest"));
let answer = null;
let sending = false;

function complain(message) {
  error.textContent = message;
  error.hidden = !message;
}

function refresh() {
  stop.hidden = answer === null;
  send.hidden = answer !== null;
  send.disabled = sending;
  messages.toggleAttribute("data-busy", answer !== null);
}

function follow() {
  const element = messages.querySelector("[data-events]");
  if (!element) return;
  if (answer?.element.dataset.generation === element.dataset.generation) {
    if (answer.element !== element) element.replaceWith(answer.element); // another version was looked at meanwhile
    return;
  }
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

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (sending || answer !== null || !text.value.trim()) return;
  sending = true;
  complain("");
  refresh();
  try {
    const fields = Object.fromEntries(new FormData(form));
    const after = [...messages.querySelectorAll(".message")].at(-1)?.dataset.message ?? ""; // what is answered is what is read
    const reply = await post(form.action, { ...fields, after }, "The server can't be reached. Your text is still here; try again.");
    text.value = "";
    text.dispatchEvent(new Event("input"));
    if (reply.url) return location.assign(reply.url);
    put(messages, reply);
    first(document.querySelector("#chat-list [aria-current]")?.parentElement);
    view.toEnd();
  } catch (problem) {
    complain(problem.message);
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
  complain("");
  try {
    await post(answer.stopUrl);
  } catch (problem) {
    stop.disabled = false;
    complain(problem.message);
  }
});

$("show-chats").addEventListener("click", (event) => {
  const open = $("chats").classList.toggle("open");
  event.currentTarget.setAttribute("aria-expanded", String(open));
});

/** Draw what is new, and follow what is on its way. */
function look() {
  keepAll(messages);
  for (const element of messages.querySelectorAll(".message--assistant:not([data-events]) .text:not(.markdown)")) {
    new Markdown(element).show(sourceOf(element.closest(".message")));
  }
  follow();
  view.look();
}

document.addEventListener("thread:changed", look);
new Turns(messages, text, { complain, isBusy: () => answer !== null, stop: () => stop.click(), toEnd: () => view.toEnd() });
look();
view.toEnd();
