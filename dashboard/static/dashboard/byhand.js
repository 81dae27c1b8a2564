/** Parking a chat and holding it, and releasing it: asked about first, and the outcome said. */

import { post } from "./post.js";

const ACTIONS = {
  park: {
    button: "Park and hold",
    question: (who) => `Park ${who} and hold it?`,
    effect: "Its text stops at once and its place goes to others. Its reader is told that an operator holds it. It stays parked until somebody releases it; nothing of it is lost.",
    done: (who) => `Held: ${who}.`,
  },
  unpark: {
    button: "Release",
    question: (who) => `Release ${who}?`,
    effect: "It goes on from where it was as soon as its turn comes and there is room.",
    done: (who) => `Released: ${who}.`,
  },
};

const $ = (id) => document.getElementById(id);

/** The button's data are `action`, `worker`, `generation` and `who`. */
export function button(action, data) {
  const element = Object.assign(document.createElement("button"), { type: "button", className: "button button--small", textContent: ACTIONS[action].button });
  Object.assign(element.dataset, { action, ...data });
  element.setAttribute("aria-label", `${ACTIONS[action].button}: ${data.who}`);
  return element;
}

/** Answer clicks on the buttons inside `box`. */
export function listen(box) {
  const [dialog, question, effect, yes, outcome] = ["confirm", "confirm-question", "confirm-effect", "confirm-yes", "outcome"].map($);
  let asked = null;

  function say(text, isError) {
    outcome.textContent = text;
    outcome.classList.toggle("error", isError);
  }

  box.addEventListener("click", ({ target }) => {
    const clicked = target.closest("button[data-action]");
    if (!clicked) return;
    asked = { ...clicked.dataset };
    const words = ACTIONS[asked.action];
    question.textContent = words.question(asked.who);
    effect.textContent = words.effect;
    yes.textContent = words.button;
    dialog.returnValue = "";
    dialog.showModal();
  });

  dialog.addEventListener("close", async () => {
    if (dialog.returnValue !== "yes") return;
    const { action, worker, generation, who } = asked;
    say("", false);
    try {
      await post(`/monitor/${action}`, { worker, generation });
      say(ACTIONS[action].done(who), false);
    } catch (problem) {
      say(problem.message, true);
    }
  });
}
