/** A chat that somebody shares: its answers as Markdown. */

import { Markdown } from "./markdown.js";

for (const element of document.querySelectorAll(".message--assistant .text")) {
  const written = element.textContent;
  new Markdown(element).show(written);
}
