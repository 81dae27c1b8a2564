/** Answers on the page: drawn in slices, the newest text first. */

import { Markdown } from "./markdown.js";
import { soon } from "./pace.js";

export class Painter {
  /** `element` shows an answer from now on; `painted()` runs after each change. */
  constructor(element, painted = () => {}) {
    const view = new Markdown(element);
    this.text = "";
    this.isEnded = false;
    this.draw = (until) => {
      view.set(this.text, this.isEnded);
      const isDrawn = view.draw(until);
      painted();
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
    soon((until) => {
      if (!painter) {
        if (element.classList.contains("markdown")) return true; // it was asked for twice
        const text = element.textContent;
        painter = Object.assign(new Painter(element, painted), { text, isEnded: true });
      }
      return painter.draw(until);
    });
  }
}
