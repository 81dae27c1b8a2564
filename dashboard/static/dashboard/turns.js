/** What can be done with the turns of a chat: copy, edit, regenerate, continue, and page through versions. */

import { announce, copyFor } from "./clipboard.js";
import { edit } from "./edit.js";
import { post } from "./post.js";
import { sourceOf } from "./source.js";
import { put } from "./thread.js";

export class Turns {
  /** `composer` is the field for new messages, `complain(text)` shows an error, `isBusy()` tells whether an answer is
      on its way, `stop()` ends it, and `toEnd()` scrolls to the newest. */
  constructor(messages, composer, { complain, isBusy, stop, toEnd }) {
    Object.assign(this, { messages, composer, complain, isBusy, stop, toEnd });
    this.isWriting = false;
    messages.addEventListener("click", ({ target }) => {
      const button = target.closest?.("button[data-do]");
      if (button) this.act(button, button.closest(".message"));
    });
    messages.addEventListener("keydown", (event) => this.step(event));
    composer.addEventListener("keydown", (event) => this.editLast(event));
    document.addEventListener("keydown", (event) => this.escape(event));
  }

  async act(button, article) {
    switch (button.dataset.do) {
      case "copy":
        return copyFor(button, sourceOf(article));
      case "edit":
        return this.edit(article);
      case "show":
        return this.show(button, article);
      case "regenerate":
      case "continue":
        return (await this.ask(button.dataset.url)).at(-1)?.focus({ preventScroll: true });
    }
  }

  /** Have an answer written, and look at it. */
  async ask(url, fields, taken) {
    const articles = await this.write(url, fields, taken);
    if (articles.length) this.toEnd();
    return articles;
  }

  /** The articles that the page shows from the first new one on; none when it was refused, which is told. `taken()`
      runs before they are shown. */
  async write(url, fields = {}, taken = () => {}) {
    if (this.isWriting) return [];
    this.isWriting = true;
    this.complain("");
    try {
      const { after, html } = await post(url, fields);
      taken();
      put(after, html);
      const all = [...this.messages.querySelectorAll(".message")];
      return all.slice(all.findIndex(({ id }) => id === `message-${after}`) + 1);
    } catch (problem) {
      this.complain(problem.message);
      return [];
    } finally {
      this.isWriting = false;
    }
  }

  edit(article) {
    const { url } = article.querySelector("[data-do=edit]").dataset;
    edit(article, this.composer.maxLength, async (text, close) => {
      const taken = () => {
        close();
        this.composer.focus();
      };
      await this.ask(url, { text }, taken);
    });
  }

  /** The focus stays on the button of the same direction, or goes to the other at the last one. */
  async show(button, article) {
    const which = [...article.querySelectorAll("[data-do=show]")].indexOf(button);
    const [shown] = await this.write(button.dataset.url);
    if (!shown) return;
    const steps = [...shown.querySelectorAll("[data-do=show]")];
    (steps[which].disabled ? steps[1 - which] : steps[which]).focus();
    announce(shown.querySelector(".count .unseen").textContent);
  }

  /** The arrow keys page through the versions while the focus is on one of their buttons. */
  step(event) {
    const versions = event.target.closest?.(".versions");
    const which = ["ArrowLeft", "ArrowRight"].indexOf(event.key);
    if (!versions || which < 0) return;
    event.preventDefault();
    const button = versions.querySelectorAll("button")[which];
    if (!button.disabled) this.act(button, versions.closest(".message"));
  }

  editLast(event) {
    if (event.key !== "ArrowUp" || event.isComposing || this.composer.value || this.isBusy()) return;
    const last = [...this.messages.querySelectorAll(".message--user")].at(-1);
    if (!last) return;
    event.preventDefault();
    this.edit(last);
  }

  /** Escape stops the answer, unless it has something else to close. */
  escape(event) {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || !this.isBusy()) return;
    if (document.querySelector("dialog[open], :popover-open")) return;
    if (event.target !== this.composer && event.target.closest?.("input, textarea, select, [role=menu], [role=listbox]")) return;
    event.preventDefault();
    this.stop();
  }
}
