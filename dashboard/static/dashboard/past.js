/** The past: lanes of the slots, and charts over a span that can be chosen. The server keeps it. */

import { Chart } from "./chart.js";
import { el, fill, table } from "./element.js";
import { Lanes } from "./lanes.js";
import { stateWord } from "./names.js";
import { number } from "./numbers.js";
import { percent } from "./percent.js";
import { clock, duration } from "./time.js";
import { fill as put, gettext } from "./words.js";

const SPANS = { "5m": "5 min", "1h": "1 h", "24h": "24 h" };
const KEY = "berth.span";
const ROWS = 10;

const few = (value) => number(value, Number.isInteger(value) ? 0 : 1);
const seconds = (value) => (value < 60 ? `${number(value, value < 10 && value % 1 ? (value < 1 ? 2 : 1) : 0)} s` : duration(value));
/** In the order of the server's points: each is [time, one value for each of these]. */
const CHARTS = [
  { title: gettext("Tokens per second"), format: (value) => (value < 10 ? few(value) : number(value)), least: 10, digest: "mean" },
  { title: gettext("Pool in use"), format: (value) => percent(value, 1), least: 1, fixed: true, digest: "mean" },
  { title: gettext("Parked chats"), format: few, least: 2 },
  { title: gettext("Chats in the queue"), format: few, least: 2 },
  { title: gettext("Time to first token"), format: seconds, least: 1, bars: true, digest: "mean" },
  { title: gettext("Longest silence"), format: seconds, least: 1 },
];

/** What the looks of a lane's pieces mean. */
const key = () => el("ul", { className: "lanes-key" }, ...Object.entries({
  decode: stateWord("decode"), prefill: stateWord("prefill"), parked: stateWord("parked"), held: gettext("held by an operator"), parking: gettext("being copied out or back"),
})
  .map(([state, words]) => el("li", {}, el("span", { className: "lanes-sample", data: { state, slot: 0 } }), words)));

export class Past {
  /** `ask(span)` has the server send a span from now on. */
  constructor(box, ask) {
    this.ask = ask;
    this.points = new Map(); // time -> point
    this.axis = null;
    this.workers = new Map();
    this.span = localStorage.getItem(KEY) in SPANS ? localStorage.getItem(KEY) : "5m";
    this.lanes = el("div", { className: "lanes-all" });
    this.noLanes = el("p", { className: "empty" }, gettext("Nothing has happened in the last minutes."));
    this.charts = CHARTS.map((about) => new Chart(about));
    this.start = el("span");
    this.table = table(gettext("The charts' figures"), [[gettext("From")], ...CHARTS.map(({ title }) => [title, "number"])]);
    this.details = el("details", { className: "figures", ontoggle: () => this.tabulate() }, el("summary", {}, gettext("As a table")), el("div", { className: "figures-box" }, this.table.element));
    box.replaceChildren(
      el("section", { className: "panel" }, el("h2", {}, gettext("Slots over the last minutes")), this.lanes, this.noLanes, key()),
      el("section", { className: "panel" },
        el("div", { className: "panel-head" }, el("h2", {}, gettext("History")), this.choice()),
        el("div", { className: "charts" }, ...this.charts.map((chart) => chart.element)),
        el("div", { className: "charts-axis", aria: { hidden: "true" } }, this.start, el("span", {}, gettext("now"))),
        this.details),
    );
  }

  choice() {
    const buttons = Object.entries(SPANS).map(([span, words]) => el("button", { type: "button", className: "segment", textContent: words, aria: { pressed: String(span === this.span) }, onclick: ({ target }) => {
      this.span = span;
      localStorage.setItem(KEY, span);
      for (const button of buttons) button.setAttribute("aria-pressed", String(button === target));
      this.ask(span);
    } }));
    return el("div", { className: "segments", aria: { role: "group", label: gettext("How far back") } }, ...buttons);
  }

  /** A message of the server; `ahead` is by how much this browser's clock runs before it. */
  show({ span, whole: isWhole, lanes, seen = {}, step, length, now, points }) {
    if (span !== this.span) return;
    for (const [worker, at] of Object.entries(seen)) this.of(worker).seen = Math.max(this.of(worker).seen, at);
    for (const worker of isWhole ? new Set([...this.workers.keys(), ...Object.keys(lanes)]) : Object.keys(lanes)) this.of(worker).add(lanes[worker] ?? [], isWhole);
    if (!points) return;
    if (isWhole) this.points.clear();
    for (const point of points) this.points.set(point[0], point);
    this.axis = { from: now - step * length, to: now, step };
    for (const at of this.points.keys()) if (at + step < this.axis.from) this.points.delete(at);
    const sorted = [...this.points.values()].sort((a, b) => a[0] - b[0]);
    this.charts.forEach((chart, i) => chart.show(sorted.map((point) => [point[0], point[i + 1]]), this.axis));
    this.start.textContent = put(gettext("%(time)s ago"), { time: SPANS[span] });
    this.tabulate();
  }

  of(worker) {
    if (!this.workers.has(worker)) this.workers.set(worker, new Lanes(worker));
    return this.workers.get(worker);
  }

  /** The lanes up to `now`, which is of the server's clock; the snapshots are of those that live. */
  paint(snapshots, now) {
    for (const snapshot of snapshots) this.of(snapshot.worker).now(snapshot);
    const alive = new Set(snapshots.map(({ worker }) => worker));
    const shown = [...this.workers.values()].filter((lanes) => !lanes.isEmpty && (alive.has(lanes.worker) || lanes.seen > now - 300)).sort((a, b) => (a.worker < b.worker ? -1 : 1));
    for (const lanes of shown) lanes.paint(now, alive.has(lanes.worker));
    const elements = shown.filter(({ rows }) => rows.children.length).map(({ element }) => element);
    if (elements.length !== this.lanes.children.length || elements.some((element, i) => element !== this.lanes.children[i])) this.lanes.replaceChildren(...elements);
    for (const lanes of shown) lanes.name.hidden = elements.length < 2;
    this.noLanes.hidden = elements.length > 0;
  }

  /** The charts' figures in ten rows, while they are looked at. */
  tabulate() {
    if (!this.details.open || !this.axis) return;
    const { from, to } = this.axis;
    const rows = Array.from({ length: ROWS }, (_, i) => {
      const [begin, end] = [i, i + 1].map((n) => from + (n * (to - from)) / ROWS);
      const points = [...this.points.values()].filter(([at]) => at >= begin && at < end);
      return { cells: [clock(new Date(1000 * begin)), ...CHARTS.map(({ format, digest }, j) => {
        const values = points.map((point) => point[j + 1]).filter((value) => value !== null);
        if (!values.length) return "–";
        return format(digest ? values.reduce((sum, value) => sum + value, 0) / values.length : Math.max(...values));
      })] };
    });
    fill(this.table, rows.reverse());
  }
}
