/** The line under an answer: its state is said as it begins, what changes meanwhile is only shown. */

import { el } from "./element.js";
import { duration } from "./time.js";
import { gettext } from "./words.js";

const SETTLES = 60; // milliseconds: what is over sooner is not said

export class StateLine {
  /** `article` is the answer's message; `changed()` runs when the line may have grown. */
  constructor(article, changed) {
    this.article = article;
    this.changed = changed;
    this.said = article.querySelector(".said");
    this.seconds = article.querySelector(".seconds");
    this.detail = el("span", { className: "detail" });
    this.bar = el("progress", { className: "read", hidden: true, aria: { label: gettext("How much of the chat is read") } });
    this.said.parentElement.append(" ", this.detail, this.bar);
    this.settling = 0;
    this.counting = 0;
  }

  /** A state begins: its words, and, where seconds are counted, the time (of Date.now) from which on. */
  begin(state, words, since = null) {
    this.article.dataset.state = state;
    this.more("");
    this.count(since);
    this.words = words;
    this.settling ||= setTimeout(() => this.say(), SETTLES);
  }

  /** Seconds since a time; null: none. */
  count(since) {
    clearInterval(this.counting);
    const show = () => (this.seconds.textContent = since === null ? "" : duration((Date.now() - since) / 1000));
    show();
    if (since !== null) this.counting = setInterval(show, 1000);
  }

  say() {
    clearTimeout(this.settling);
    this.settling = 0;
    if (this.said.textContent !== this.words) this.said.textContent = this.words;
    this.changed();
  }

  /** What is to tell of the state just now; of a prompt that is read, how much of it. */
  more(words, done = 0, total = 0) {
    if (this.detail.textContent !== words) this.detail.textContent = words;
    this.bar.hidden = !total;
    if (total) Object.assign(this.bar, { max: total, value: Math.min(done, total) });
  }

  /** The last state, and what to do about it. Where there is nothing to read of it, it is heard that the answer is there. */
  end(state, words, advice) {
    this.begin(state, words || gettext("The answer is complete."));
    this.said.classList.toggle("unseen", !words);
    this.say();
    if (advice) this.said.append(" ", el("span", { className: "advice" }, advice));
    this.detail.remove();
    this.bar.remove();
  }
}
