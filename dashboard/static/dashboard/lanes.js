/** Who was in each slot over the last minutes: a lane a slot, a piece for each state of a chat. */

import { el } from "./element.js";
import { nameOf, stateWord } from "./names.js";
import { clock, duration } from "./time.js";
import { fill, gettext } from "./words.js";

const MINUTES = 5;
const SPAN = 60 * MINUTES;
const COLOURS = 8;
const LEGIBLE = 28; // pixels that a name needs at least

export class Lanes {
  constructor(worker) {
    this.slots = new Map(); // slot -> changes [at, slot, state, owner, generation], oldest first
    this.rows = el("div", { className: "lanes" });
    this.name = el("h4");
    this.element = el("div", { className: "lanes-of" }, this.name, this.rows,
      el("div", { className: "lanes-axis", aria: { hidden: "true" } }, ...Array.from({ length: MINUTES + 1 }, (_, i) => el("span", {}, i === MINUTES ? gettext("now") : `${MINUTES - i} min`))));
    this.worker = worker;
    this.seen = 0; // when the worker was heard of last
    this.present = new Set(); // the slots that it had then
  }

  /** Add what the server tells; `whole`: in place of all that was known. */
  add(changes, whole) {
    if (whole) this.slots.clear();
    for (const change of changes) {
      const [at, slot] = change;
      if (slot !== null) this.put(change);
      else for (const one of this.slots.keys()) this.put([at, one, "idle", null, null]); // the worker ended
    }
  }

  put(change) {
    const [at, slot] = change;
    const lane = this.slots.get(slot) ?? [];
    this.slots.set(slot, lane);
    while (lane.length && lane.at(-1)[0] >= at) lane.pop(); // what was only guessed from a picture
    lane.push(change);
  }

  /** The picture of now tells what no change is known of: a chat that has been there for long. */
  now(snapshot) {
    this.seen = snapshot.at;
    this.present = new Set(snapshot.slots.map(({ id }) => id));
    for (const slot of snapshot.slots) {
      if (!this.slots.has(slot.id)) this.slots.set(slot.id, [[slot.since ?? snapshot.at, slot.id, slot.held ? "held" : slot.state, slot.owner, slot.generation]]);
    }
  }

  /** Whether there is something to see. */
  get isEmpty() {
    return !this.slots.size;
  }

  paint(now, isAlive) {
    const from = now - SPAN;
    const end = isAlive ? now : Math.min(now, this.seen);
    this.name.textContent = fill(gettext("Worker %(worker)s"), this);
    const lanes = [...this.slots.keys()].sort((a, b) => a - b)
      .map((slot) => [slot, this.pieces(slot, from, end)])
      .filter(([slot, pieces]) => pieces.length || this.present.has(slot));
    while (this.rows.children.length > lanes.length) this.rows.lastChild.remove();
    lanes.forEach(([slot, pieces], i) => {
      const row = this.rows.children[i] ?? this.rows.appendChild(el("div", { className: "lane-row" }, el("span", { className: "lane-name" }), el("div", { className: "lane", aria: { role: "img" } })));
      row.firstChild.textContent = slot;
      paintLane(row.lastChild, slot, pieces, from);
    });
  }

  /** Who was in a slot from `from` to `end`; forgets what was before. */
  pieces(slot, from, end) {
    const changes = this.slots.get(slot);
    while (changes.length > 1 && changes[1][0] < from) changes.shift();
    return changes
      .map(([at, , state, owner, generation], j) => ({ state, owner, generation, since: at, from: Math.max(from, at), to: changes[j + 1]?.[0] ?? end }))
      .filter((piece) => piece.state !== "idle" && piece.to > piece.from);
  }
}

/** The pieces that bear a name: of each chat's visit the one in which it has most room. */
function named(pieces) {
  const found = new Set();
  let widest = 0;
  pieces.forEach((piece, i) => {
    const isSame = i > 0 && pieces[i - 1].generation === piece.generation;
    if (isSame && piece.to - piece.from <= pieces[widest].to - pieces[widest].from) return;
    if (isSame) found.delete(widest);
    found.add(i);
    widest = i;
  });
  return found;
}

function paintLane(lane, slot, pieces, from) {
  const withName = named(pieces);
  const second = lane.clientWidth / SPAN; // in pixels
  while (lane.children.length > pieces.length) lane.lastChild.remove();
  pieces.forEach((piece, i) => {
    const shown = lane.children[i] ?? lane.appendChild(el("span"));
    shown.dataset.slot = slot % COLOURS;
    shown.dataset.state = piece.state;
    shown.dataset.starts = String(i === 0 || pieces[i - 1].generation !== piece.generation);
    shown.style.left = `${(100 * (piece.from - from)) / SPAN}%`;
    shown.style.width = `${(100 * (piece.to - piece.from)) / SPAN}%`;
    const label = withName.has(i) && second * (piece.to - piece.from) >= LEGIBLE ? nameOf(piece) : "";
    if (shown.textContent !== label) shown.textContent = label;
    shown.title = words(piece);
  });
  const last = pieces.slice(-6).map(words).join("; ");
  lane.setAttribute("aria-label", fill(gettext("Slot %(slot)s in the last %(n)s minutes: %(what)s"), { slot, n: MINUTES, what: last || stateWord("idle") }));
}

const words = ({ state, owner, generation, since, to }) => fill(gettext("%(who)s: %(state)s from %(begin)s for %(time)s"), {
  who: nameOf({ owner, generation }), state: stateWord(state), begin: clock(new Date(1000 * since)), time: duration(to - since),
});
