/** The text of each message as it was written, once it is drawn as something else. */

const written = new WeakMap();

export function keep(article, text) {
  written.set(article, text);
}

/** Keep those of the answers in `root` that are over and not drawn yet. */
export function keepAll(root) {
  for (const text of root.querySelectorAll(".message--assistant:not([data-events]) .text:not(.markdown)")) {
    keep(text.closest(".message"), text.textContent);
  }
}

export function sourceOf(article) {
  return written.get(article) ?? article.querySelector(".text").textContent;
}
