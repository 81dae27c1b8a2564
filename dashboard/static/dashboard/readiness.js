// Says so above the chat while no model is ready to answer.

const EVERY = 5000; // milliseconds while it is said
const SELDOM = 30_000; // and while all is well

const notice = document.getElementById("not-ready");

async function look() {
  let isReady = notice.hidden;
  try {
    if (!document.hidden) isReady = (await fetch("/health", { cache: "no-store" })).ok;
    notice.hidden = isReady;
  } catch {
    // Offline: that is for others to say.
  }
  setTimeout(look, isReady ? SELDOM : EVERY);
}

look();
