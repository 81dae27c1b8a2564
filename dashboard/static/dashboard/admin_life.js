// The life of a generation that goes on: drawn again every few seconds, and the whole page once it is over.

const EVERY = 3000; // milliseconds

async function refresh() {
  if (!document.hidden) {
    try {
      const reply = await fetch(location.href);
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const life = reply.ok && page.getElementById("life");
      if (life && life.dataset.over === "yes") return location.reload();
      if (life) document.getElementById("life").replaceWith(document.adoptNode(life));
    } catch {
      // Offline: what is shown stays, and the next attempt comes.
    }
  }
  setTimeout(refresh, EVERY);
}

setTimeout(refresh, EVERY);
