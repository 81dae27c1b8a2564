/** A figure over time as SVG: an area for what is always there, bars for what comes now and then. */

import { el } from "./element.js";
import { clock } from "./time.js";
import { fill, gettext } from "./words.js";

const WIDTH = 600;
const HEIGHT = 120;
const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes = {}) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** The least of 1, 2, 5, 10, 20, … that is not below `value`. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value - 1e-9);
}

export class Chart {
  /** `format(value)` gives a value's words; `least` is the least that the axis ends at, and with `fixed` always. */
  constructor({ title, format, least = 1, fixed = false, bars = false }) {
    Object.assign(this, { title, format, least, fixed, bars });
    this.points = [];
    this.at = null; // the point that is looked at, or null for the last
    this.value = el("span", { className: "chart-value" });
    this.top = el("span", { className: "chart-top" });
    this.summary = el("p", { className: "chart-summary" });
    this.plot = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", tabindex: "0", class: "chart-plot", "aria-label": `${title}: ${gettext("nothing yet")}` });
    this.area = svg("path", { class: bars ? "chart-bars" : "chart-area" });
    this.line = svg("path", { class: "chart-line" });
    this.cursor = svg("path", { class: "chart-cursor" });
    this.plot.append(this.area, this.line, this.cursor);
    this.element = el("figure", { className: "chart" }, el("figcaption", {}, el("span", { className: "chart-title" }, title), this.value), el("div", { className: "chart-box" }, this.plot, this.top), this.summary);
    this.plot.addEventListener("pointermove", (event) => this.look(this.nearest(event)));
    this.plot.addEventListener("pointerleave", () => this.look(null));
    this.plot.addEventListener("blur", () => this.look(null));
    this.plot.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !this.points.length) return;
      event.preventDefault();
      const last = this.points.length - 1;
      this.look(Math.max(0, Math.min(last, (this.at ?? last) + step)));
    });
  }

  /** `points` are [time, value or null], oldest first, each for `step` seconds; the axis ends at `to`. */
  show(points, { from, to, step }) {
    const looked = this.at === null ? null : this.points[this.at]?.[0];
    this.points = points.filter(([at, value]) => value !== null && at + step > from);
    Object.assign(this, { from, to, step });
    const found = looked === null ? -1 : this.points.findIndex(([at]) => at === looked);
    this.at = found < 0 ? null : found;
    const values = this.points.map(([, value]) => value);
    const most = Math.max(0, ...values);
    this.most = this.fixed ? this.least : roundUp(Math.max(this.least, most));
    this.top.textContent = this.format(this.most);
    this.paint();
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const text = values.length ? fill(gettext("on average %(mean)s, at most %(most)s"), { mean: this.format(mean), most: this.format(most) }) : gettext("nothing yet");
    if (this.summary.textContent !== text) this.summary.textContent = text;
    const latest = this.isOfNow ? `${fill(this.bars ? gettext("%(value)s last") : gettext("%(value)s now"), { value: this.format(values.at(-1)) })}, ` : "";
    this.plot.setAttribute("aria-label", `${this.title}: ${latest}${text}`);
    this.say();
  }

  /** Whether the last point tells how it is now: bars tell of what came last, however long ago. */
  get isOfNow() {
    const last = this.points.at(-1);
    return Boolean(last) && (this.bars || this.to - last[0] < 3.5 * this.step);
  }

  x(at) {
    return Math.max(0, Math.min(WIDTH, (WIDTH * (at - this.from)) / (this.to - this.from)));
  }

  y(value) {
    return HEIGHT - (HEIGHT - 4) * Math.min(1, value / this.most);
  }

  paint() {
    const { step } = this;
    if (this.bars) {
      const width = this.x(this.from + step) * 0.8;
      this.area.setAttribute("d", this.points.map(([at, value]) => `M${this.x(at).toFixed(1)} ${HEIGHT}h${Math.max(1, width).toFixed(1)}V${this.y(value).toFixed(1)}h-${Math.max(1, width).toFixed(1)}z`).join(""));
      return;
    }
    const runs = []; // where nothing is known the line is broken
    for (const point of this.points) {
      const run = runs.at(-1);
      if (run && point[0] - run.at(-1)[0] < 2.5 * step) run.push(point);
      else runs.push([point]);
    }
    const places = runs.map((run) => run.map(([at, value]) => `${this.x(at + step / 2).toFixed(1)} ${this.y(value).toFixed(1)}`));
    this.line.setAttribute("d", places.map((run) => `M${run.join("L")}`).join(""));
    this.area.setAttribute("d", places.map((run) => `M${run[0].split(" ")[0]} ${HEIGHT}L${run.join("L")}V${HEIGHT}z`).join(""));
  }

  nearest({ clientX }) {
    if (!this.points.length) return null;
    const box = this.plot.getBoundingClientRect();
    const at = this.from + ((clientX - box.left) / box.width) * (this.to - this.from) - this.step / 2;
    return this.points.reduce((best, point, i) => (Math.abs(point[0] - at) < Math.abs(this.points[best][0] - at) ? i : best), 0);
  }

  look(i) {
    this.at = i;
    this.say();
  }

  /** The value of the last point, or of the one that is looked at with its time. */
  say() {
    const point = this.points[this.at ?? this.points.length - 1];
    const when = this.at === null || !point ? "" : `${clock(new Date(1000 * point[0]))} · `;
    const text = when || this.isOfNow ? when + this.format(point[1]) : "–";
    if (this.value.textContent !== text) this.value.textContent = text;
    this.cursor.setAttribute("d", when ? `M${this.x(point[0] + this.step / 2).toFixed(1)} 0V${HEIGHT}` : "");
  }
}
