// Badges of generations that are not over: kept as they are now, and told how they ended.

import { live } from "./live.js";
import { stateWord } from "./names.js";
import { gettext } from "./words.js";

const STATES = "/admin/inference/generation/states/";
const ASK_EVERY = 2000; // milliseconds

const badges = new Map(); // id -> elements
for (const badge of document.querySelectorAll(".berth-badge[data-generation]")) {
  const id = badge.dataset.generation;
  badges.set(id, [...(badges.get(id) ?? []), badge]);
}

function show(id, state, word) {
  for (const badge of badges.get(id)) {
    badge.className = `berth-badge berth-${state}`;
    if (badge.textContent !== word) badge.textContent = word;
  }
}

const capital = (word) => word[0].toUpperCase() + word.slice(1);

// [id, state, word] of whoever is in the picture.
function* everyone(workers) {
  for (const { slots, parked, queue } of workers) {
    for (const { generation } of queue) yield [generation, "queued", gettext("Queued")];
    for (const { generation, state, held } of slots) {
      if (generation) yield [generation, state, capital(stateWord(held ? "held" : state))];
    }
    for (const { generation, held } of parked) yield [generation, "parked", capital(stateWord(held ? "held" : "parked"))];
  }
}

let asking = false;

// What the picture lacks has ended, or the picture is older than it.
async function ask(ids) {
  if (asking || ids.length === 0) return;
  asking = true;
  setTimeout(() => { asking = false; }, ASK_EVERY);
  try {
    const reply = await fetch(`${STATES}?${new URLSearchParams(ids.map((id) => ["id", id]))}`);
    if (!reply.ok) return;
    for (const [id, [state, word]] of Object.entries(await reply.json())) {
      if (!badges.has(id)) continue;
      show(id, state, word);
      if (["finished", "cancelled", "failed"].includes(state)) badges.delete(id);
    }
  } catch {
    // Offline; the next picture asks again.
  }
}

function message({ workers }) {
  if (!workers) return;
  document.body.classList.remove("is-stale");
  const missing = new Set(badges.keys());
  for (const [id, state, word] of everyone(workers)) {
    if (badges.has(id)) show(id, state, word);
    missing.delete(id);
  }
  ask([...missing]);
}

if (badges.size > 0) live("/ws/monitor/", { message, lost: () => document.body.classList.add("is-stale") });
