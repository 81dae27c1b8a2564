/** Editing one's own message where it stands. */

import { el } from "./element.js";
import { sourceOf } from "./source.js";
import { gettext } from "./words.js";

/** Open a message of one's own for editing. `send(text, close)` sends it, and closes the field when it went. When it is
    left, the focus is where it was. */
export function edit(article, limit, send) {
  if ("editing" in article.dataset) return article.querySelector(".edit textarea").focus();
  const before = document.activeElement;
  const field = el("textarea", { value: sourceOf(article), maxLength: limit, rows: 1, aria: { label: gettext("Your message") } });
  const cancel = el("button", { type: "button", className: "button button--quiet button--small" }, gettext("Cancel"));
  const submit = el("button", { className: "button button--main button--small" }, gettext("Send"));
  const form = el("form", { className: "edit" }, field, el("div", { className: "edit-choices" }, cancel, submit));

  const close = () => {
    form.remove();
    delete article.dataset.editing;
  };
  const leave = () => {
    close();
    (before?.isConnected && before !== document.body ? before : article).focus();
    document.dispatchEvent(new CustomEvent("chat:changed")); // what came meanwhile was held back
  };
  cancel.addEventListener("click", leave);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (submit.disabled || !field.value.trim()) return;
    submit.disabled = true;
    await send(field.value, close);
    submit.disabled = false;
  });
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      leave();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      form.requestSubmit();
    }
  });

  article.dataset.editing = "";
  article.querySelector(".text").after(form);
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
  form.scrollIntoView({ block: "nearest" });
}
