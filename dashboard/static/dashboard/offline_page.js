// The page that stands in for another while the server can't be reached: it gives way as soon as it can.

const EVERY = 2000; // milliseconds

async function look() {
  try {
    await fetch("/health", { cache: "no-store" }); // whatever it says, somebody answers
    location.reload();
  } catch {
    setTimeout(look, EVERY);
  }
}

setTimeout(look, EVERY);
addEventListener("online", look);
