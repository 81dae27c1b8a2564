/** To the message that the address names: a hit of a search. */

import { post } from "./post.js";
import { toast } from "./toast.js";

/** The message's number in the address; "" when there is none. */
const wanted = () => /^#message-(\d+)$/.exec(location.hash)?.[1] ?? "";

export function jump() {
  const pk = wanted();
  if (!pk) return;
  const message = document.getElementById(`message-${pk}`);
  if (!message) return showVersion(pk);
  message.tabIndex = -1;
  message.classList.add("message--found");
  message.focus({ preventScroll: true });
  const stay = new ResizeObserver(() => message.scrollIntoView({ block: "center" }));
  stay.observe(message.parentElement); // the texts around it are drawn little by little
  for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) addEventListener(kind, () => stay.disconnect(), { once: true, passive: true });
  message.addEventListener("blur", () => {
    stay.disconnect();
    message.classList.remove("message--found");
  }, { once: true });
}

/** It is in another version of the chat than the one that is read. */
async function showVersion(pk) {
  if (new URLSearchParams(location.search).get("shown") === pk) return;
  try {
    await post(`/messages/${pk}/show`);
    location.replace(`${location.pathname}?shown=${pk}${location.hash}`);
  } catch (problem) {
    toast(problem.message);
  }
}

addEventListener("hashchange", jump);
requestAnimationFrame(jump); // when the texts have their heights
