/** The monitor: live occupancy of every worker, and the past. Who and how much, never what. */

import { keepingFocus, listen } from "./actions.js";
import { headline } from "./headline.js";
import { live } from "./live.js";
import { Past } from "./past.js";
import { clock } from "./time.js";
import { fill, gettext } from "./words.js";
import { Worker } from "./worker.js";

const [state, summary, box, pastBox] = ["live", "headline", "workers", "past"].map((id) => document.getElementById(id));
const [word, text] = summary.children;
const workers = new Map();
const none = Object.assign(document.createElement("p"), { className: "panel empty", textContent: gettext("No worker is running. Chats wait until one is.") });
let snapshots = [];
let ahead = 0; // this browser's clock against the server's, in seconds
let isLive = false;
let send = () => {};

const past = new Past(pastBox, (span) => send({ span }));

function say(words) {
  if (state.textContent !== words) state.textContent = words;
  state.dataset.live = isLive ? "yes" : "no";
  for (const part of [box, pastBox]) part.classList.toggle("stale", !isLive);
}

function sum({ level, word: one, text: more }) {
  summary.dataset.level = level;
  if (word.textContent !== one) word.textContent = one;
  if (text.textContent !== more) text.textContent = more;
}

/** What goes on between two messages. */
function count() {
  if (!isLive) return; // what was true then does not get older
  const now = Date.now() / 1000 - ahead;
  keepingFocus(() => {
    for (const worker of workers.values()) worker.count();
  });
  sum(headline(snapshots, now));
  past.paint(snapshots, now);
}

function show(shown, now) {
  snapshots = shown;
  ahead = Date.now() / 1000 - now;
  for (const snapshot of snapshots) {
    if (!workers.has(snapshot.worker)) workers.set(snapshot.worker, new Worker());
    const others = snapshots.filter((other) => other !== snapshot && other.state === "ready").length;
    workers.get(snapshot.worker).show(snapshot, ahead, others);
  }
  const alive = new Set(snapshots.map((snapshot) => snapshot.worker));
  for (const name of workers.keys()) if (!alive.has(name)) workers.delete(name);
  const panels = [...workers.keys()].sort().map((name) => workers.get(name).element);
  const wanted = panels.length ? panels : [none];
  if (wanted.length !== box.children.length || wanted.some((panel, i) => panel !== box.children[i])) box.replaceChildren(...wanted);
}

live("/ws/monitor/", {
  open(speak) {
    send = speak;
    send({ span: past.span });
  },
  message(message) {
    if (message.past) past.show(message.past);
    else keepingFocus(() => show(message.workers, message.now));
    isLive = true;
    say(gettext("Live"));
    count();
  },
  lost(since, code) {
    isLive = false;
    if (code === 4403) say(gettext("You are signed out, or no longer staff. Reload the page."));
    else say(fill(gettext("Not live since %(time)s; reconnecting"), { time: clock(since) }));
    sum({ level: "unknown", word: gettext("Not known."), text: fill(gettext("What is below is of %(time)s."), { time: clock(since) }) });
  },
});

listen(document.querySelector("main"));
setInterval(count, 1000);
