// The life of a generation that goes on: drawn again every few seconds, and the whole page once it is over.

const EVERY = 3000; // milliseconds

// The table stays where it was scrolled to, and keeps the focus.
function replace(old, life) {
  const [before, after] = [old, life].map((one) => one.querySelector(".life-table"));
  const [hasFocus, scrolled] = [before === document.activeElement, before.scrollLeft];
  old.replaceWith(life);
  after.scrollLeft = scrolled;
  if (hasFocus) after.focus({ preventScroll: true });
}

async function refresh() {
  if (!document.hidden) {
    try {
      const reply = await fetch(location.href);
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const life = reply.ok && page.getElementById("life");
      if (life && life.dataset.over === "yes") return location.reload();
      if (life) replace(document.getElementById("life"), document.adoptNode(life));
    } catch {
      // Offline: what is shown stays, and the next attempt comes.
    }
  }
  setTimeout(refresh, EVERY);
}

setTimeout(refresh, EVERY);
