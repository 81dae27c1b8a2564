/** What an operator does with a chat or a worker: said before and asked about, and the outcome said after. */

import { post } from "./post.js";

const PRIORITIES = { high: -1, normal: 0, low: 1 };
const number = new Intl.NumberFormat();

export const priorityName = (priority) => Object.keys(PRIORITIES).find((name) => PRIORITIES[name] === priority) ?? `priority ${priority}`;

/** By name: the button's words, what is asked, what it will do, and what it did, told from the worker's answer. */
const ACTIONS = {
  park: {
    button: () => "Park and hold",
    item: () => "Park and hold…",
    question: ({ who }) => `Park ${who} and hold it?`,
    effect: () => "Its text stops at once and its place goes to others. Its reader is told that an operator holds it. It stays parked until somebody releases it; nothing of it is lost.",
    done: ({ who }) => `Held: ${who}.`,
  },
  unpark: {
    button: () => "Release",
    item: () => "Release…",
    question: ({ who }) => `Release ${who}?`,
    effect: () => "It goes on from where it was as soon as its turn comes and there is room.",
    done: ({ who }) => `Released: ${who}.`,
  },
  cancel: {
    button: () => "Cancel it",
    item: () => "Cancel…",
    question: ({ who }) => `Cancel ${who}?`,
    effect: () => "Its answer ends here, for good, and all that it holds is free for others. What is written of it stays; its reader sees that it was stopped.",
    no: "Let it go on",
    done: ({ who }, { n_decoded: n }) => `Cancelled: ${who}. ${number.format(n)} ${n === 1 ? "token" : "tokens"} of its answer stay.`,
    grave: true,
  },
  prioritise: {
    button: ({ priority }) => `Make it ${priorityName(Number(priority))}`,
    item: ({ priority }) => `Priority ${priorityName(Number(priority))}…`,
    question: ({ who, priority }) => `Give ${who} ${priorityName(Number(priority))} priority?`,
    effect: ({ priority, was }) => (Number(priority) < Number(was)
      ? "It moves up in the line as if it had waited a minute longer for each level, and chats of a lower priority are parked for it where it needs their room."
      : "It moves down in the line by a minute for each level, and is parked before chats of a higher priority when room is short."),
    done: ({ who }, { was, priority }) => `${who[0].toUpperCase()}${who.slice(1)} had ${priorityName(was)} priority and has ${priorityName(priority)} now.`,
  },
  drain: {
    button: () => "Drain",
    question: ({ worker }) => `Drain worker ${worker}?`,
    effect: ({ n, others }) => `It takes no new chats from now on. ${Number(n) ? `The ${n === "1" ? "one" : n} that it has ${n === "1" ? "goes" : "go"} on to the end, parked ones too.` : "It has none now."} ${Number(others) ? "New chats go to the other workers." : "No other worker takes chats: new ones wait, and the API refuses them, until you undo this."}`,
    done: ({ worker }) => `Worker ${worker} takes no new chats.`,
  },
  undrain: {
    button: () => "Take chats again",
    question: ({ worker }) => `Let worker ${worker} take chats again?`,
    effect: () => "New chats, and those that wait for a worker, come to it from now on.",
    done: ({ worker }) => `Worker ${worker} takes chats again.`,
  },
};

const $ = (id) => document.getElementById(id);
export const mayAct = document.body.querySelector("main").dataset.mayOperate === "yes";

/** The button's data are what its action needs: `worker`, and of a chat `generation` and `who`. */
export function button(action, data) {
  const asked = { action, ...data };
  const element = Object.assign(document.createElement("button"), { type: "button", className: "button button--small", textContent: ACTIONS[action].button(asked) });
  Object.assign(element.dataset, asked);
  element.setAttribute("aria-label", `${element.textContent}: ${data.who ?? `worker ${data.worker}`}`);
  return element;
}

/** A button that offers what else can be done with a chat. */
export function more(data) {
  const element = Object.assign(document.createElement("button"), { type: "button", className: "button button--small button--more", textContent: "⋯" });
  Object.assign(element.dataset, { more: "", ...data });
  element.setAttribute("aria-label", `More: ${data.who}`);
  element.setAttribute("aria-haspopup", "menu");
  return element;
}

/** Give the focus to a button of the same chat as `data`'s, the same button if it is there. */
function focusAgain({ generation, action, more: isMore }) {
  const found = [...document.querySelectorAll("#workers button")].filter((one) => one.dataset.generation === generation);
  const same = found.find((one) => one.dataset.action === action && one.dataset.more === isMore);
  (same ?? found.find((one) => "more" in one.dataset))?.focus();
}

/** Paint; a button of a chat that was drawn anew, perhaps in another place, has the focus again. */
export function keepingFocus(paint) {
  const data = { ...document.activeElement?.dataset };
  paint();
  if (data.generation && document.activeElement === document.body) focusAgain(data);
}

/** Answer clicks on the buttons inside `box`. */
export function listen(box) {
  const [dialog, question, effect, no, yes, outcome, menu] = ["confirm", "confirm-question", "confirm-effect", "confirm-no", "confirm-yes", "outcome", "more"].map($);
  let asked = null;
  let from = {}; // the data of the button that was pressed

  function say(text, isError) {
    outcome.textContent = text;
    outcome.classList.toggle("error", isError);
  }

  function ask(data) {
    asked = { ...data };
    const words = ACTIONS[asked.action];
    question.textContent = words.question(asked);
    effect.textContent = words.effect(asked);
    no.textContent = words.no ?? "Cancel";
    yes.textContent = words.button(asked);
    yes.classList.toggle("button--grave", Boolean(words.grave));
    dialog.returnValue = "";
    dialog.showModal();
  }

  function open(clicked) {
    const { more: _, first, ...chat } = clicked.dataset;
    const offered = [...(first ? [{ action: first, ...chat }] : []), { action: "cancel", ...chat }];
    for (const priority of Object.values(PRIORITIES)) if (priority !== Number(chat.was)) offered.push({ action: "prioritise", ...chat, priority });
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
