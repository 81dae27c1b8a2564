/** One worker's panel: its pool, its slots, who is parked and who waits. */

import { button } from "./byhand.js";
import { duration } from "./time.js";

const COLOURS = 8;
const number = new Intl.NumberFormat();

/** An element with properties and children; strings become text. */
function el(tag, properties = {}, ...children) {
  const { data = {}, ...rest } = properties;
  const element = Object.assign(document.createElement(tag), rest);
  Object.assign(element.dataset, data);
  element.append(...children);
  return element;
}

function table(label, columns) {
  const body = el("tbody");
  const head = columns.map(([title, className = ""]) => el("th", { scope: "col", className }, title));
  const element = el("table", { className: "table" }, el("caption", { className: "unseen" }, label), el("thead", {}, el("tr", {}, ...head)), body);
  return { element, columns, body };
}

/** Rows are [key, state, cells…]; those that stay are kept in place, so that nothing jumps. */
function fill({ body, columns }, rows) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach(({ state = "", cells }, i) => {
    const row = body.rows[i] ?? body.appendChild(el("tr", {}, ...columns.map(([, className = ""]) => el("td", { className }))));
    row.dataset.state = state;
    cells.forEach((cell, j) => {
      const place = row.cells[j];
      // What is equal stays: a button keeps the focus, and a click that has begun.
      if (cell instanceof Node) place.firstChild?.isEqualNode(cell) || place.replaceChildren(cell);
      else if (place.textContent !== String(cell)) place.textContent = cell;
    });
  });
}

const swatch = (slot) => el("span", { className: "swatch", data: slot < 0 ? {} : { slot: slot % COLOURS } });
const where = (slot) => el("span", {}, swatch(slot), slot < 0 ? "–" : String(slot));
const word = (state) => el("span", { className: "state-word" }, { idle: "idle", prefill: "reading", decode: "writing", parked: "parked", held: "held" }[state] ?? state);

/** Whose it is, with its priority where that is not the usual one. */
function owner({ owner, priority = 0 }) {
  const name = el("span", {}, owner || "–");
  if (priority) name.append(" ", el("span", { className: "priority" }, { "-1": "high", 1: "low" }[priority] ?? `priority ${priority}`));
  return name;
}

export class Worker {
  constructor() {
    this.name = el("h2");
    this.about = el("p");
    this.used = el("span");
    this.free = el("span");
    this.bar = el("div", { className: "pool-bar", role: "img" });
    this.slots = table("Slots", [["Slot"], ["State"], ["Owner", "owner"], ["Cells", "number"], ["Tokens/s", "number minor"], ["Parks", "number minor"], ["", "action"]]);
    this.parked = table("Parked, in order of return", [["Owner", "owner"], ["Slot", "minor"], ["Cells", "number"], ["Waiting", "number"]]);
    this.held = table("Held by an operator", [["Owner", "owner"], ["Slot", "minor"], ["Cells", "number"], ["Held for", "number"], ["", "action"]]);
    this.queue = table("Queue", [["Owner", "owner"], ["Prompt", "number"], ["Waiting", "number"]]);
    this.notParked = el("p", { className: "empty" }, "Nobody is parked.");
    this.noQueue = el("p", { className: "empty" }, "Nobody waits.");
    this.heldPart = el("div", { className: "part held", hidden: true }, el("h3", {}, "Held by an operator"), this.held.element);
    this.element = el(
      "section", { className: "panel" },
      el("div", { className: "panel-head" }, this.name, this.about),
      el("div", { className: "pool" }, el("div", { className: "pool-line" }, this.used, this.free), this.bar),
      el("div", { className: "part" }, el("h3", {}, "Slots"), this.slots.element),
      this.heldPart,
      el(
        "div", { className: "columns" },
        el("div", { className: "part parked" }, el("h3", {}, "Parked, in order of return"), this.parked.element, this.notParked),
        el("div", { className: "part queue" }, el("h3", {}, "Queue"), this.queue.element, this.noQueue),
      ),
    );
  }

  /** `ahead`: by how many seconds this browser's clock runs before the server's. */
  show(snapshot, ahead) {
    this.snapshot = snapshot;
    this.ahead = ahead;
    const { model, n_ctx_seq, pool, slots, state } = snapshot;
    this.name.textContent = model.alias;
    const loading = state === "ready" ? "" : ` · ${state}`;
    this.about.textContent = `worker ${snapshot.worker} · context ${number.format(n_ctx_seq)} · ${slots.length} slots${loading}`;
    this.used.textContent = `Pool: ${number.format(pool.used)} of ${number.format(pool.cells)} cells`;
    this.free.textContent = `${pool.cells ? Math.floor((100 * pool.used) / pool.cells) : 0} % full`;
    this.paintBar(pool, slots);
    fill(this.slots, slots.map((slot) => ({
      state: slot.state,
      cells: [where(slot.id), word(slot.held ? "held" : slot.state), owner(slot), number.format(slot.cells),
        slot.state === "decode" ? slot.tokens_per_second.toFixed(1) : "–", slot.generation ? slot.parks : "–",
        slot.state === "decode" || slot.state === "prefill" ? this.action("park", slot) : ""],
    })));
    this.count();
  }

  paintBar(pool, slots) {
    const parts = slots.map((slot) => [String(slot.id % COLOURS), slot.cells]);
    const held = slots.reduce((sum, slot) => sum + slot.cells, 0);
    parts.push(["other", Math.max(0, pool.used - held)]); // kept prefixes
    const scale = Math.max(pool.cells, held, 1); // a shared cell counts for each of its holders
    while (this.bar.children.length < parts.length) this.bar.append(el("span"));
    while (this.bar.children.length > parts.length) this.bar.lastChild.remove();
    parts.forEach(([slot, cells], i) => {
      const part = this.bar.children[i];
      part.dataset.slot = slot;
      part.style.width = `${(100 * cells) / scale}%`;
    });
    const words = slots.filter((slot) => slot.cells).map((slot) => `slot ${slot.id} holds ${slot.cells}`);
    this.bar.setAttribute("aria-label", `${pool.used} of ${pool.cells} cells in use${words.length ? ": " + words.join(", ") : ""}`);
  }

  action(name, { generation, owner }) {
    return button(name, { worker: this.snapshot.worker, generation, who: owner ? `${owner}'s chat` : "this chat" });
  }

  /** The lists whose seconds go on between two snapshots. */
  count() {
    const { queue } = this.snapshot;
    const [held, parked] = [true, false].map((wanted) => this.snapshot.parked.filter((one) => Boolean(one.held) === wanted));
    const waited = (since) => duration(Date.now() / 1000 - this.ahead - since);
    this.parked.element.hidden = !parked.length;
    this.notParked.hidden = parked.length > 0;
    fill(this.parked, parked.map((one) => ({
      state: "parked", cells: [owner(one), where(one.slot), number.format(one.cells), waited(one.since)],
    })));
    this.heldPart.hidden = !held.length;
    fill(this.held, held.map((one) => ({
      state: "parked", cells: [owner(one), where(one.slot), number.format(one.cells), waited(one.since), this.action("unpark", one)],
    })));
    this.queue.element.hidden = !queue.length;
    this.noQueue.hidden = queue.length > 0;
    fill(this.queue, queue.map((one) => ({
      cells: [owner(one), number.format(one.n_prompt_tokens), waited(one.since)],
    })));
  }
}
