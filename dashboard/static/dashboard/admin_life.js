// The life of a generation that goes on: drawn again every few seconds, and the whole page once it is over.

import { gettext } from "./words.js";

const EVERY = 3000; // milliseconds

// The table stays where it was scrolled to, and keeps the focus.
function replace(old, life) {
  const [before, after] = [old, life].map((one) => one.querySelector(".life-table"));
  const [hasFocus, scrolled] = [before === document.activeElement, before.scrollLeft];
  old.replaceWith(life);
  after.scrollLeft = scrolled;
  if (hasFocus) after.focus({ preventScroll: true });
}

// What cannot be read anew is not shown as if it were of now.
function say(isLive) {
  const life = document.getElementById("life");
  life.classList.toggle("is-stale", !isLive);
  life.querySelector(".life-live").textContent = isLive ? "" : gettext("not live");
}

async function refresh() {
  if (!document.hidden) {
    try {
      const reply = await fetch(location.href);
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const life = reply.ok && page.getElementById("life");
      if (life && life.dataset.over === "yes") return location.reload();
      if (life) replace(document.getElementById("life"), document.adoptNode(life));
      say(Boolean(life)); // without one it has been deleted, or who looks is signed out
    } catch {
      say(false); // offline: the next attempt comes
    }
  }
  setTimeout(refresh, EVERY);
}

setTimeout(refresh, EVERY);
