// The panel on the admin's index: what `/ws/monitor/` says, in the markup that the page came with.

import { live } from "./live.js";
import { causeWord, nameOf, stateWord } from "./names.js";
import { number } from "./numbers.js";
import { clock, duration } from "./time.js";
import { fill, gettext } from "./words.js";

const panel = document.getElementById("occupancy");
const said = panel.querySelector(".occupancy-live");
const note = panel.querySelector(".occupancy-note");
const list = panel.querySelector(".occupancy-workers");
let ahead = Date.now() / 1000 - Number(panel.dataset.now); // this clock against the server's, in seconds
let isLive = true; // what the page came with is of now

function part(name) {
  return panel.querySelector(`template[data-part="${name}"]`).content.firstElementChild.cloneNode(true);
}

function put(element, name, value) {
  const target = element.querySelector(`[data-text="${name}"]`);
  if (target.textContent !== String(value)) target.textContent = value;
  return target;
}

// Keep the elements that are there, so that a selection or a screen reader's place survives an update.
function match(parent, items, name, fill) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  items.forEach((item, i) => fill(parent.children[i] ?? parent.appendChild(part(name)), item));
}

// An owner leads to the generation, for those who may see its page.
function putOwner(element, { owner, generation }) {
  const target = put(element, "owner", generation ? nameOf({ owner, generation }) : "");
  if (target.tagName !== "A") return;
  if (generation) target.href = `/admin/inference/generation/${generation}/change/`;
  else target.removeAttribute("href");
}

function fillSlot(element, slot) {
  put(element, "id", slot.id);
  put(element, "state", stateWord(slot.held ? "held" : slot.state)).className = `berth-badge berth-${slot.state}`;
  putOwner(element, slot);
  put(element, "cells", number(slot.cells));
}

function fillParked(element, chat) {
  putOwner(element, chat);
  put(element, "cause", causeWord(chat.cause));
  put(element, "cells", number(chat.cells));
  put(element, "held", chat.held ? stateWord("held") : "");
  element.querySelector("[data-since]").dataset.since = chat.since;
}

function fillWorker(element, worker) {
  element.dataset.worker = worker.worker;
  put(element, "worker", worker.worker);
  put(element, "model", worker.model.alias);
  put(element, "used", number(worker.pool.used));
  put(element, "cells", number(worker.pool.cells));
  put(element, "parked", worker.parked.length);
  put(element, "queued", worker.queue.length);
  const bar = element.querySelector("progress");
  bar.max = worker.pool.cells;
  bar.value = worker.pool.used;
  match(element.querySelector(".occupancy-slots"), worker.slots, "slot", fillSlot);
  match(element.querySelector(".occupancy-parked"), worker.parked, "parked", fillParked);
}

function show(workers, now) {
  ahead = Date.now() / 1000 - now;
  note.textContent = gettext("No worker is running.");
  note.hidden = workers.length > 0;
  match(list, workers, "worker", fillWorker);
  count();
}

function count() {
  if (!isLive) return; // what was true then does not get older
  const now = Date.now() / 1000 - ahead;
  for (const element of list.querySelectorAll("[data-since]")) {
    element.textContent = duration(now - Number(element.dataset.since));
  }
}

function say(words) {
  if (said.textContent !== words) said.textContent = words;
  panel.classList.toggle("is-live", isLive);
  panel.classList.toggle("is-stale", !isLive);
}

live("/ws/monitor/", {
  message({ workers, now }) {
    isLive = true;
    say(gettext("live"));
    show(workers, now);
  },
  lost(since, code) {
    isLive = false;
    if (code === 4403) say(gettext("You are signed out, or no longer staff. Reload the page."));
    else say(fill(gettext("Not live since %(time)s; reconnecting"), { time: clock(since) }));
  },
});
setInterval(count, 1000);
