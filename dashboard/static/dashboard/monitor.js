/** The monitor: live occupancy of every worker. Who and how much, never what. */

import { listen } from "./byhand.js";
import { live } from "./live.js";
import { clock } from "./time.js";
import { Worker } from "./worker.js";

const state = document.getElementById("live");
const box = document.getElementById("workers");
const workers = new Map();
const none = Object.assign(document.createElement("p"), { className: "panel empty", textContent: "No worker is running. Chats wait until one is." });

function say(text, isLive) {
  if (state.textContent !== text) state.textContent = text;
  state.dataset.live = isLive ? "yes" : "no";
  box.classList.toggle("stale", !isLive);
}

live("/ws/monitor/", {
  message({ workers: snapshots, now }) {
    const ahead = Date.now() / 1000 - now; // this browser's clock against the server's
    for (const snapshot of snapshots) {
      if (!workers.has(snapshot.worker)) workers.set(snapshot.worker, new Worker());
      workers.get(snapshot.worker).show(snapshot, ahead);
    }
    const alive = new Set(snapshots.map((snapshot) => snapshot.worker));
    for (const name of workers.keys()) if (!alive.has(name)) workers.delete(name);
    const panels = [...workers.keys()].sort().map((name) => workers.get(name).element);
    const wanted = panels.length ? panels : [none];
    if (wanted.length !== box.children.length || wanted.some((panel, i) => panel !== box.children[i])) box.replaceChildren(...wanted);
    say("Live", true);
  },
  lost(since, code) {
    if (code === 4403) say("You are signed out, or no longer staff. Reload the page.", false);
    else say(`Not live since ${clock(since)}; reconnecting`, false);
  },
});

listen(box);

setInterval(() => {
  for (const worker of workers.values()) worker.count();
}, 1000);
