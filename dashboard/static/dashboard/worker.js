/** One worker's panel: its pool, its slots, who is parked and who waits. */

import { button, mayAct, more, priorityName } from "./actions.js";
import { el, fill, table } from "./element.js";
import { wish } from "./headline.js";
import { causeWord, chatOf, nameOf, stateWord } from "./names.js";
import { number } from "./numbers.js";
import { percent } from "./percent.js";
import { bytes, duration } from "./time.js";
import { fill as put, gettext } from "./words.js";

const COLOURS = 8;

const swatch = (slot) => el("span", { className: "swatch", data: slot < 0 ? {} : { slot: slot % COLOURS } });
const where = (slot) => el("span", {}, swatch(slot), slot < 0 ? "–" : String(slot));

/** What a slot's chat is doing; a prompt with how far it is. */
function doing(slot) {
  const state = slot.held ? "held" : slot.state;
  const shown = el("span", { className: "state-word" }, stateWord(state));
  if (slot.state !== "prefill" || !slot.n_prompt_tokens) return shown;
  const bar = el("progress", { max: slot.n_prompt_tokens, value: slot.n_prompt_processed, aria: { label: gettext("of the prompt") } });
  return el("span", { className: "reading" }, shown, bar, ` ${percent(slot.n_prompt_processed, slot.n_prompt_tokens)}`);
}

/** Whose it is, with its priority where that is not the usual one. */
function owner(one) {
  const { generation, priority = 0 } = one;
  const name = el("span", { title: generation ?? "" }, nameOf(one));
  if (priority) name.append(" ", el("span", { className: "priority" }, priorityName(priority)));
  return name;
}

/** How a parked chat is kept. */
const kept = (one) => (one.method === "swap"
  ? put(gettext("swap, %(size)s"), { size: bytes(one.bytes) })
  : put(gettext("recompute, %(n)s tokens"), { n: number(one.tokens) }));

/** What of the chats is in host RAM; "" when nothing is. */
function inRam({ preempt_ram_bytes: parked, preempt_ram_kept_bytes: kept, cache_ram_bytes: prompts }) {
  const said = [];
  if (parked) said.push(put(gettext("Host RAM: %(size)s of parked chats."), { size: bytes(parked) }));
  if (kept) said.push(put(gettext("Host RAM: %(size)s kept of earlier parks, so that the next copies less."), { size: bytes(kept) }));
  if (prompts) said.push(put(gettext("Host RAM: %(size)s of computed prompts, so that a chat's next turn is read sooner."), { size: bytes(prompts) }));
  return said.join(" ");
}

/** Whose turn is next, and what it waits for. */
function nextOf(head) {
  const [who, what, n] = [chatOf(head), wish(head), number(head.free)];
  if (!what) return put(gettext("Next is %(who)s: there is room for it."), { who });
  if (!head.slots) return put(gettext("Next is %(who)s, for %(what)s."), { who, what });
  return put(gettext("Next is %(who)s, for %(what)s: %(n)s are free."), { who, what, n });
}

/** "3: 1 high, 2 normal" of those who wait in the queue; "3" where nothing is told by more. */
function byPriority(queue) {
  const counts = new Map();
  for (const { priority } of [...queue].sort((a, b) => a.priority - b.priority)) counts.set(priority, (counts.get(priority) ?? 0) + 1);
  if (counts.size === 1 && counts.has(0)) return number(queue.length);
  return `${number(queue.length)}: ${[...counts].map(([priority, n]) => `${n} ${priorityName(priority)}`).join(", ")}`;
}

function part(className, title, ...children) {
  const heading = el("h3", {}, title);
  return { element: el("div", { className: `part ${className}` }, heading, ...children), heading };
}

export class Worker {
  constructor() {
    this.name = el("h2");
    this.about = el("p");
    this.state = el("span", { className: "state-word", hidden: true });
    this.acts = el("div", { className: "panel-acts" });
    this.used = el("span");
    this.full = el("span");
    this.bar = el("div", { className: "pool-bar", aria: { role: "img" } });
    this.legend = el("ul", { className: "legend" });
    this.ram = el("p", { className: "ram" });
    this.slots = table(gettext("Slots"), [[gettext("Slot")], [gettext("State")], [gettext("Chat"), "owner"], [gettext("Cells"), "number"], [gettext("Of pool"), "number minor"], [gettext("Tokens/s"), "number minor"], [gettext("Parks"), "number minor"], ["", "action"]]);
    this.parked = table(gettext("Parked, in order of return"), [[gettext("Chat"), "owner"], [gettext("Why"), "minor"], [gettext("Kept by"), "minor"], [gettext("Cells"), "number minor"], [gettext("Waiting"), "number"], ["", "action"]]);
    this.held = table(gettext("Held by an operator"), [[gettext("Chat"), "owner"], [gettext("Kept by"), "minor"], [gettext("Cells"), "number minor"], [gettext("Held for"), "number"], ["", "action"]]);
    this.queue = table(gettext("Queue, in order of turn"), [[gettext("Chat"), "owner"], [gettext("Prompt"), "number"], [gettext("Waiting"), "number"], ["", "action"]]);
    this.next = el("p", { className: "next" });
    this.notParked = el("p", { className: "empty" }, gettext("Nobody is parked."));
    this.noQueue = el("p", { className: "empty" }, gettext("Nobody waits."));
    this.heldPart = part("held", gettext("Held by an operator"), this.held.element).element;
    this.queuePart = part("queue", gettext("Queue"), this.queue.element, this.noQueue);
    this.element = el(
      "section", { className: "panel" },
      el("div", { className: "panel-head" }, this.name, this.state, this.about, this.acts),
      el("div", { className: "pool" }, el("div", { className: "pool-line" }, this.used, this.full), this.bar, this.legend, this.ram),
      part("slots", gettext("Slots"), this.slots.element).element,
      this.heldPart,
      el("div", { className: "waiting" }, this.next,
        el("div", { className: "columns" }, part("parked", gettext("Parked, in order of return"), this.parked.element, this.notParked).element, this.queuePart.element)),
    );
  }

  /** `ahead`: by how many seconds this browser's clock runs before the server's; `others`: workers that take new chats. */
  show(snapshot, ahead, others) {
    this.snapshot = snapshot;
    this.ahead = ahead;
    const { model, device, n_ctx_seq, pool, slots, state, worker } = snapshot;
    this.name.textContent = model.alias;
    this.state.textContent = stateWord(state);
    this.state.hidden = state === "ready";
    this.about.textContent = put(gettext("worker %(worker)s · %(device)s · context %(context)s · %(n)s slots"), { worker, device, context: number(n_ctx_seq), n: slots.length });
    this.used.textContent = put(gettext("Pool: %(used)s of %(all)s cells"), { used: number(pool.used), all: number(pool.cells) });
    this.full.textContent = put(gettext("%(share)s full"), { share: percent(pool.used, pool.cells) });
    this.ram.textContent = inRam(snapshot.counters);
    this.ram.hidden = !this.ram.textContent;
    this.paintPool(pool, slots);
    this.paintActs(state, worker, others);
    fill(this.slots, slots.map((slot) => ({
      state: slot.state,
      cells: [where(slot.id), doing(slot), owner(slot), number(slot.cells), slot.cells ? percent(slot.cells, pool.cells) : "–",
        slot.state === "decode" ? number(slot.tokens_per_second, 1) : "–", slot.generation ? slot.parks : "–",
        ["idle", "parked"].includes(slot.state) ? "" : this.acting(slot, ["decode", "prefill"].includes(slot.state) ? "park" : "")],
    })));
    this.count();
  }

  paintPool(pool, slots) {
    const parts = slots.map((slot) => [slot.id, slot.cells, nameOf(slot)]);
    const held = slots.reduce((sum, slot) => sum + slot.cells, 0);
    const scale = Math.max(pool.cells, held, 1); // a shared cell counts for each of its holders
    while (this.bar.children.length < parts.length) this.bar.append(el("span"));
    while (this.bar.children.length > parts.length) this.bar.lastChild.remove();
    parts.forEach(([slot, cells], i) => {
      const span = this.bar.children[i];
      span.dataset.slot = slot % COLOURS;
      span.style.width = `${(100 * cells) / scale}%`;
    });
    const words = slots.filter((slot) => slot.cells).map((slot) => (slot.owner ? put(gettext("slot %(id)s holds %(cells)s for %(owner)s"), slot) : put(gettext("slot %(id)s holds %(cells)s"), slot)));
    this.bar.setAttribute("aria-label", put(gettext("%(used)s of %(cells)s cells in use"), pool) + (words.length ? `: ${words.join(", ")}` : ""));
    const items = parts.filter(([, cells]) => cells).map(([slot, cells, whose]) => el("li", {}, swatch(slot), `${whose} ${percent(cells, pool.cells)}`));
    if (items.length !== this.legend.children.length || items.some((item, i) => !item.isEqualNode(this.legend.children[i]))) this.legend.replaceChildren(...items);
  }

  paintActs(state, worker, others) {
    if (!mayAct || !["ready", "draining"].includes(state)) return;
    const { slots, parked, queue } = this.snapshot;
    const n = new Set([...slots, ...parked, ...queue].map((one) => one.generation).filter(Boolean)).size;
    const wanted = state === "ready" ? button("drain", { worker, n, others }) : button("undrain", { worker });
    if (!this.acts.firstChild?.isEqualNode(wanted)) {
      const focused = this.acts.contains(document.activeElement);
      this.acts.replaceChildren(wanted);
      if (focused) wanted.focus();
    }
  }

  /** The buttons of a chat. */
  acting(chat, first) {
    if (!mayAct) return "";
    const data = { worker: this.snapshot.worker, generation: chat.generation, who: chatOf(chat) };
    return el("span", { className: "acts" }, ...(first ? [button(first, data)] : []), more({ ...data, was: chat.priority, first }));
  }

  /** The lists whose seconds go on between two snapshots. */
  count() {
    const { queue, head, parked: everyone } = this.snapshot;
    const [held, parked] = [true, false].map((wanted) => everyone.filter((one) => Boolean(one.held) === wanted));
    const waited = (since) => duration(Date.now() / 1000 - this.ahead - since);
    const how = (one, first) => [kept(one), number(one.cells), waited(one.since), this.acting(one, first)];
    this.parked.element.hidden = !parked.length;
    this.notParked.hidden = parked.length > 0;
    fill(this.parked, parked.map((one) => ({ state: "parked", cells: [owner(one), causeWord(one.cause), ...how(one, "")] })));
    this.heldPart.hidden = !held.length;
    fill(this.held, held.map((one) => ({ state: "parked", cells: [owner(one), ...how(one, "unpark")] })));
    this.queue.element.hidden = !queue.length;
    this.noQueue.hidden = queue.length > 0;
    const title = queue.length ? put(gettext("Queue, %(what)s"), { what: byPriority(queue) }) : gettext("Queue");
    if (this.queuePart.heading.textContent !== title) this.queuePart.heading.textContent = title;
    fill(this.queue, queue.map((one) => ({ cells: [owner(one), number(one.n_prompt_tokens), waited(one.since), this.acting(one, "")] })));
    const next = head ? nextOf(head) : "";
    if (this.next.textContent !== next) this.next.textContent = next;
    this.next.hidden = !head;
  }
}
