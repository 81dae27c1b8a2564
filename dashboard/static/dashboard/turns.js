/** What can be done with the turns of a chat: copy, edit, regenerate, continue, and page through versions. */

import { announce, copy } from "./clipboard.js";
import { edit } from "./edit.js";
import { ours } from "./markdown.js";
import { post } from "./post.js";
import { sourceOf } from "./source.js";
import { gettext } from "./words.js";

const SHOWN = 2000; // milliseconds for which a button says what it has done

/** Show a reply of a write: behind the message `after` (null: from the start) there is nothing but `html`. The new
    articles; none where the page was out of date, which is then loaded anew. */
export function put(messages, { after, html }) {
  const there = [...messages.querySelectorAll(".message")];
  const at = there.findIndex((article) => article.dataset.message === String(after)) + 1;
  if (after !== null && at === 0) {
    location.reload();
    return [];
  }
  messages.querySelector(".hello")?.remove();
  for (const article of there.slice(at)) article.remove();
  const fragment = ours(html);
  const articles = [...fragment.children];
  messages.append(fragment);
  document.dispatchEvent(new CustomEvent("thread:changed"));
  return articles;
}

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
        return this.copy(button, article);
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
  async ask(url, fields) {
    const articles = await this.write(url, fields);
    if (articles.length) this.toEnd();
    return articles;
  }

  /** The articles that are new; none when it was refused, which is told. */
  async write(url, fields = {}) {
    if (this.isWriting) return [];
    this.isWriting = true;
    this.complain("");
    try {
      return put(this.messages, await post(url, fields));
    } catch (problem) {
      this.complain(problem.message);
      return [];
    } finally {
      this.isWriting = false;
    }
  }

  async copy(button, article) {
    const said = (await copy(sourceOf(article))) ? gettext("Copied") : gettext("Couldn't copy");
    announce(said);
    button.textContent = said;
    clearTimeout(button.timer);
    button.timer = setTimeout(() => (button.textContent = gettext("Copy")), SHOWN);
  }

  edit(article) {
    const { url } = article.querySelector("[data-do=edit]").dataset;
    edit(article, this.composer.maxLength, async (text) => {
      const isSent = (await this.ask(url, { text })).length > 0;
      if (isSent) this.composer.focus();
      return isSent;
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
