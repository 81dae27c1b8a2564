/** The chat page: sending, stopping, and following the answer that is on its way. */

import { Answer } from "./answer.js";
import { Markdown, ours } from "./markdown.js";
import { post } from "./post.js";
import { Follower } from "./scroll.js";

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
}

function follow() {
  const element = messages.querySelector("[data-events]");
  if (!element) return;
  stop.disabled = false;
  answer = new Answer(element, {
    painted: () => view.keep(),
    over() {
      answer = null;
      delete element.dataset.events;
      if (document.activeElement === stop) text.focus();
      refresh();
    },
  });
  refresh();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (sending || answer !== null || !text.value.trim()) return;
  sending = true;
  complain("");
  refresh();
  try {
    const reply = await post(form.action, Object.fromEntries(new FormData(form)), "The server can't be reached. Your text is still here; try again.");
    text.value = "";
    text.dispatchEvent(new Event("input")); // its draft goes
    if (reply.url) return location.assign(reply.url);
    messages.append(ours(reply.html));
    first(document.querySelector("#chat-list [aria-current]")?.parentElement);
    view.toEnd();
    follow();
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

for (const element of messages.querySelectorAll(".message--assistant:not([data-events]) .text")) {
  const written = element.textContent;
  new Markdown(element).show(written);
}
view.toEnd();
follow();
