/** Answers on the page: drawn in slices, the newest text first. */

import { Markdown } from "./markdown.js";
import { hasFormula, load, missing, ready } from "./maths.js";
import { soon } from "./pace.js";

const PATIENCE = 1000; // milliseconds that an old answer is not shown for while its formulas can't be drawn

export class Painter {
  /** `element` shows an answer from now on; `painted()` runs after each change. */
  constructor(element, painted = () => {}) {
    const view = new Markdown(element);
    let isWaiting = false; // for formulas, which are drawn as their sources for now
    this.text = "";
    this.isEnded = false;
    this.draw = (until) => {
      const before = missing();
      view.set(this.text, this.isEnded);
      const isDrawn = view.draw(until);
      painted();
      if (missing() > before && !isWaiting) {
        isWaiting = true;
        ready.then(() => {
          view.again();
          soon(this.draw, !this.isEnded);
        });
      }
      return isDrawn;
    };
  }

  /** The whole text so far. However fast it comes, the page is touched once a frame. */
  show(text) {
    this.text = text;
    soon(this.draw, true);
  }

  /** The whole text; nothing more comes. */
  finish(text) {
    this.isEnded = true;
    this.show(text);
  }
}

const taken = new WeakSet(); // by drawAll

/** Draw what was written long ago, the last first. What was drawn or waits for it is left as it is. */
export function drawAll(root, painted) {
  const all = [...root.querySelectorAll(".message--assistant:not([data-events]) .text:not(.markdown)")];
  for (const element of all.reverse()) {
    if (taken.has(element)) continue;
    taken.add(element);
    let painter = null;
    const draw = (until) => {
      if (!painter) {
        if (element.classList.contains("markdown")) return true; // it was asked for twice
        const text = element.textContent;
        painter = Object.assign(new Painter(element, painted), { text, isEnded: true });
      }
      return painter.draw(until);
    };
    if (hasFormula(element.textContent)) Promise.race([load(), pause(PATIENCE)]).then(() => soon(draw));
    else soon(draw);
  }
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
