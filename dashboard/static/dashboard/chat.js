/** The chat page: sending, stopping, and following the answer that is on its way. */

import { insert } from "./thread.js"; // first: it remembers the page as it came
import { Answer } from "./answer.js";
import { Markdown } from "./markdown.js";
import { post } from "./post.js";
import { Follower } from "./scroll.js";

const $ = (id) => document.getElementById(id);
const [form, text, send, stop, messages, error] = ["composer", "text", "send", "stop", "messages", "error"].map($);
const view = new Follower($("scroll"), $("latest"));
let answer = null;
let sending = false;
let isGone = false; // the chat was deleted

function complain(message) {
  error.textContent = message;
  error.hidden = !message;
}

function refresh() {
  stop.hidden = answer === null;
  send.hidden = answer !== null;
  send.disabled = sending || isGone;
}

function follow() {
  const element = messages.querySelector("[data-events]");
  if (answer?.element === element) return;
  answer?.leave();
  answer = null;
  if (!element) return refresh();
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
  if (sending || isGone || answer !== null || !text.value.trim()) return;
  sending = true;
  complain("");
  refresh();
  try {
    const reply = await post(form.action, { text: text.value }, "The server can't be reached. Your text is still here; try again.");
    text.value = "";
    if (reply.url) return location.assign(reply.url);
    insert(reply.html);
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

function draw() {
  for (const element of messages.querySelectorAll(".message--assistant:not([data-events]) .text:not(.markdown)")) {
    const written = element.textContent;
    new Markdown(element).show(written);
  }
}

document.addEventListener("thread:changed", () => {
  draw();
  follow();
  view.keep();
});
document.addEventListener("chat:gone", ({ detail }) => {
  isGone = detail;
  refresh();
});

draw();
view.toEnd();
follow();
