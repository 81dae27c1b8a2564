/** What an operator does with a chat or a worker: said before and asked about, and the outcome said after. */

import { number } from "./numbers.js";
import { post } from "./post.js";
import { clock } from "./time.js";
import { fill, gettext, ngettext } from "./words.js";

const PRIORITIES = [-1, 0, 1];
const capital = (text) => text[0].toUpperCase() + text.slice(1);

const LEVELS = { [-1]: gettext("high"), 0: gettext("normal"), 1: gettext("low") };
export const priorityName = (priority) => LEVELS[priority] ?? fill(gettext("priority %(n)s"), { n: priority });

/** What becomes of the chats that a draining worker has. */
const goingOn = (n) => (Number(n)
  ? fill(ngettext("The one that it has goes on to the end, parked or not.", "The %(n)s that it has go on to the end, parked ones too.", Number(n)), { n })
  : gettext("It has none now."));

/** By name: the button's words, what is asked, what it will do, and what it did, told from the worker's answer. */
const ACTIONS = {
  park: {
    button: () => gettext("Park and hold"),
    item: () => gettext("Park and hold…"),
    question: ({ who }) => fill(gettext("Park %(who)s and hold it?"), { who }),
    effect: () => gettext("Its text stops at once and its place goes to others. Its reader is told that an operator holds it. It stays parked until somebody releases it; nothing of it is lost."),
    done: ({ who }) => fill(gettext("Held: %(who)s. Its place goes to others until somebody releases it."), { who }),
  },
  unpark: {
    button: () => gettext("Release"),
    item: () => gettext("Release…"),
    question: ({ who }) => fill(gettext("Release %(who)s?"), { who }),
    effect: () => gettext("It goes on from where it was as soon as its turn comes and there is room."),
    done: ({ who }) => fill(gettext("Released: %(who)s. It goes on when its turn comes."), { who }),
  },
  cancel: {
    button: () => gettext("Cancel it"),
    item: () => gettext("Cancel…"),
    question: ({ who }) => fill(gettext("Cancel %(who)s?"), { who }),
    effect: () => gettext("Its answer ends here, for good, and all that it holds is free for others. What is written of it stays; its reader sees that it was stopped."),
    no: gettext("Let it go on"),
    done: ({ who }, { n_decoded: n }) => fill(ngettext("Cancelled: %(who)s. %(n)s token of its answer stays.", "Cancelled: %(who)s. %(n)s tokens of its answer stay.", n), { who, n: number(n) }),
    grave: true,
  },
  prioritise: {
    button: ({ priority }) => fill(gettext("Make it %(level)s"), { level: priorityName(Number(priority)) }),
    item: ({ priority }) => fill(gettext("Priority %(level)s…"), { level: priorityName(Number(priority)) }),
    question: ({ who, priority }) => fill(gettext("Give %(who)s %(level)s priority?"), { who, level: priorityName(Number(priority)) }),
    effect: ({ priority, was }) => (Number(priority) < Number(was)
      ? gettext("It moves up in the line as if it had waited a minute longer for each level, and chats of a lower priority are parked for it where it needs their room.")
      : gettext("It moves down in the line by a minute for each level, and is parked before chats of a higher priority when room is short.")),
    done: ({ who }, { was, priority }) => capital(fill(gettext("%(who)s had %(was)s priority and has %(level)s now."), { who, was: priorityName(was), level: priorityName(priority) })),
  },
  drain: {
    button: () => gettext("Drain"),
    question: ({ worker }) => fill(gettext("Drain worker %(worker)s?"), { worker }),
    effect: ({ n, others }) => [
      gettext("It takes no new chats from now on."),
      goingOn(n),
      Number(others) ? gettext("New chats go to the other workers.") : gettext("No other worker takes chats: new ones wait, and the API refuses them, until you undo this."),
    ].join(" "),
    done: ({ worker, n }) => `${fill(gettext("Worker %(worker)s takes no new chats."), { worker })} ${goingOn(n)}`,
  },
  undrain: {
    button: () => gettext("Take chats again"),
    question: ({ worker }) => fill(gettext("Let worker %(worker)s take chats again?"), { worker }),
    effect: () => gettext("New chats, and those that wait for a worker, come to it from now on."),
    done: ({ worker }) => fill(gettext("Worker %(worker)s takes chats again."), { worker }),
  },
};

const $ = (id) => document.getElementById(id);
export const mayAct = document.body.querySelector("main").dataset.mayOperate === "yes";

/** The button's data are what its action needs: `worker`, and of a chat `generation` and `who`. */
export function button(action, data) {
  const asked = { action, ...data };
  const element = Object.assign(document.createElement("button"), { type: "button", className: "button button--small", textContent: ACTIONS[action].button(asked) });
  Object.assign(element.dataset, asked);
  element.setAttribute("aria-label", `${element.textContent}: ${data.who ?? fill(gettext("worker %(worker)s"), data)}`);
  return element;
}

/** A button that offers what else can be done with a chat. */
export function more(data) {
  const element = Object.assign(document.createElement("button"), { type: "button", className: "button button--small button--more", textContent: "⋯" });
  Object.assign(element.dataset, { more: "", ...data });
  element.setAttribute("aria-label", fill(gettext("More: %(who)s"), data));
  element.setAttribute("aria-haspopup", "menu");
  return element;
}

const buttonsOf = (generation) => [...document.querySelectorAll("#workers button")].filter((one) => one.dataset.generation === generation);

/** Give the focus to a button of the same chat as `data`'s, the same button if it is there. */
function focusAgain({ generation, action, more: isMore }) {
  const found = buttonsOf(generation);
  const same = found.find((one) => one.dataset.action === action && one.dataset.more === isMore);
  (same ?? found.find((one) => "more" in one.dataset))?.focus();
}

/** Paint; a button of a chat that was drawn anew, perhaps in another place, has the focus again. Nothing is offered any more
    of a chat that is gone. */
export function keepingFocus(paint) {
  const data = { ...document.activeElement?.dataset };
  paint();
  const offered = $("more").firstElementChild?.dataset.generation;
  if (offered && !buttonsOf(offered).length) $("more").hidePopover();
  if (data.generation && document.activeElement === document.body) focusAgain(data);
}

/** Answer clicks on the buttons inside `box`. */
export function listen(box) {
  const [dialog, question, effect, no, yes, outcome, menu] = ["confirm", "confirm-question", "confirm-effect", "confirm-no", "confirm-yes", "outcome", "more"].map($);
  let asked = null;
  let from = {}; // the data of the button that was pressed

  function say(text, isError) {
    outcome.textContent = text;
    outcome.dataset.at = clock(new Date());
    outcome.classList.toggle("error", isError);
  }

  function ask(data) {
    asked = { ...data };
    const words = ACTIONS[asked.action];
    question.textContent = words.question(asked);
    effect.textContent = words.effect(asked);
    no.textContent = words.no ?? gettext("Cancel");
    yes.textContent = words.button(asked);
    yes.classList.toggle("button--grave", Boolean(words.grave));
    dialog.returnValue = "";
    dialog.showModal();
  }

  function open(clicked) {
    const { more: _, first, ...chat } = clicked.dataset;
    const offered = [...(first ? [{ action: first, ...chat }] : []), { action: "cancel", ...chat }];
    for (const priority of PRIORITIES) if (priority !== Number(chat.was)) offered.push({ action: "prioritise", ...chat, priority });
    menu.replaceChildren(...offered.map((data) => {
      const item = Object.assign(document.createElement("button"), { type: "button", className: "menu-item", textContent: ACTIONS[data.action].item(data) });
      item.setAttribute("role", "menuitem");
      Object.assign(item.dataset, data);
      return item;
    }));
    menu.setAttribute("aria-label", chat.who);
    menu.showPopover({ source: clicked });
    const at = clicked.getBoundingClientRect();
    menu.style.left = `${Math.max(8, Math.min(at.right, innerWidth - 8) - menu.offsetWidth)}px`;
    menu.style.top = `${at.bottom + menu.offsetHeight + 8 > innerHeight ? at.top - menu.offsetHeight - 4 : at.bottom + 4}px`;
    menu.firstElementChild.focus();
  }

  box.addEventListener("click", ({ target }) => {
    const clicked = target.closest("button[data-action], button[data-more]");
    if (!clicked || menu.contains(clicked)) return;
    from = { ...clicked.dataset };
    if (clicked.dataset.action) ask(clicked.dataset);
    else open(clicked);
  });

  menu.addEventListener("click", ({ target }) => {
    const item = target.closest("button");
    if (!item) return;
    menu.hidePopover();
    ask(item.dataset);
  });

  menu.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const items = [...menu.children];
    items[(items.indexOf(document.activeElement) + step + items.length) % items.length].focus();
  });

  menu.addEventListener("focusout", ({ relatedTarget }) => relatedTarget && !menu.contains(relatedTarget) && menu.hidePopover());

  addEventListener("scroll", () => menu.hidePopover(), { passive: true });

  dialog.addEventListener("close", async () => {
    // The browser gives the focus back to what had it, unless that was drawn anew meanwhile.
    if (document.activeElement === document.body || dialog.contains(document.activeElement)) focusAgain(from);
    if (dialog.returnValue !== "yes") return;
    const { action, worker, generation = "", priority = "" } = asked;
    const said = asked;
    say("", false);
    try {
      const answer = await post(`/monitor/${action}`, { worker, generation, priority });
      say(ACTIONS[action].done(said, answer), false);
    } catch (problem) {
      say(problem.message, true);
    }
  });
}
