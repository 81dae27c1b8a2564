/** One answer on its way: its event stream in, its text and its state out. */

import { latest } from "./feed.js";
import { Painter } from "./painter.js";
import { StateLine } from "./state_line.js";
import { detail, line, parked, resumed } from "./states.js";

const KINDS = ["now", "waiting", "accepted", "started", "token", "text", "preempted", "released", "resumed", "finished", "failed"];

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15000;
const BRIEFLY = 3000; // milliseconds for which it is shown that an answer goes on
const OUT_OF_SIGHT = 10000; // after which a hidden page lets go of its stream: a browser has few connections

export class Answer {
  /** `element` is a message with data-events; `painted()` runs after each change, `over()` once at the end. */
  constructor(element, { painted, over }) {
    this.element = element;
    this.stopUrl = element.dataset.stop;
    this.painted = painted;
    this.over = over;
    this.text = element.querySelector(".text").textContent; // of an answer that goes on: what was there before
    this.view = new Painter(element.querySelector(".text"), painted);
    if (this.text) this.view.show(this.text);
    this.line = new StateLine(element, painted);
    this.state = { name: "waiting", words: line("waiting"), since: null };
    this.isPast = true; // what is told has been so, and something else may be by now
    this.seen = ""; // the id of the last event
    this.wait = FIRST_WAIT;
    this.hears = new AbortController();
    const on = (target, kind, action) => target.addEventListener(kind, action, { signal: this.hears.signal });
    on(document, "visibilitychange", () => this.look());
    on(window, "online", () => this.follow());
    on(document, "feed:back", () => document.hidden || this.follow()); // its own connection may be as dead
    on(document, "feed:chats", ({ detail: news }) => this.hear(news));
    this.follow();
  }

  /** Take up the stream, from the last event that was seen. */
  follow() {
    this.source?.close();
    clearTimeout(this.again);
    const url = new URL(this.element.dataset.events, location.href);
    if (this.seen) url.searchParams.set("after", this.seen);
    const source = (this.source = new EventSource(url));
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => {
        this.seen = event.lastEventId || this.seen;
        this.take(kind, JSON.parse(event.data));
      });
    }
    source.onopen = () => {
      this.wait = FIRST_WAIT;
      this.isPast = true;
    };
    source.onerror = () => this.broken(source);
  }

  /** A page that nobody sees for long lets go of its stream, and takes it up again when it is seen. */
  look() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => this.rest(), OUT_OF_SIGHT);
    else if (this.source.readyState === EventSource.CLOSED) this.follow();
  }

  rest() {
    this.source.close();
    this.tell(null); // the feed knows better now
  }

  take(kind, data) {
    switch (kind) {
      case "now":
        this.isPast = false;
        return this.show();
      case "waiting":
        return this.become("waiting", line("absent"));
      case "accepted":
        return this.become("waiting");
      case "started":
        return this.become("reading");
      case "token":
        return this.write(data);
      case "text": // the whole text at once, out of the database
        this.text = "";
        return this.write(data);
      case "preempted":
        return this.become(parked(data.cause), line(parked(data.cause), data.cause), Date.now() - data.waited * 1000);
      case "released": // the seconds go on
        return this.become("paused", line("paused", "hand"), this.state.since);
      case "resumed":
        this.become("resumed", resumed(data.waited));
        if (this.state.name === "resumed") this.going = setTimeout(() => this.become(this.text ? "writing" : "reading"), BRIEFLY);
        return;
      case "finished":
      case "failed":
        this.write(data.text ?? "");
        this.element.toggleAttribute("data-unfinished", Boolean(data.unfinished));
        return this.end(data.look, data.note, this.text ? data.advice : data.advice_without_text);
    }
  }

  write(text) {
    if (!text) return;
    if (!["writing", "resumed"].includes(this.state.name)) this.become("writing");
    this.text += text;
    this.view.show(this.text);
  }

  /** A new state, with the time since which it is counted. */
  become(name, words = line(name), since = null) {
    clearTimeout(this.going);
    this.state = { name, words, since };
    if (!this.isPast) this.show();
  }

  show() {
    const { name, words, since } = this.state;
    this.line.begin(name, words, since);
    this.tell(name);
    this.hear(latest()); // which may know more
  }

  /** The rest of the page shows it too. */
  tell(state) {
    document.dispatchEvent(new CustomEvent("answer:state", { detail: { state } }));
  }

  /** What the feed says of the chats on their way: of this one how far it is, never in which state. */
  hear({ chats, ahead }) {
    const place = Object.values(chats).find(({ generation }) => generation === this.generation);
    if (!place || this.isPast) return;
    const name = place.state === "resuming" ? "paused" : place.state;
    if (name === "reading" && this.state.name === "resumed") return this.become("reading"); // what it had, once more
    if (name !== this.state.name) return;
    this.line.more(detail(place), place.done, place.total);
    if (place.since && this.state.since !== null) this.line.count((this.state.since = (place.since + ahead) * 1000));
  }

  get generation() {
    return this.element.dataset.events.match(/[0-9a-f-]{36}/)[0].replaceAll("-", "");
  }

  /** EventSource comes back by itself, from the last event it has seen, unless it was answered with an error:
      a server that restarts gives one, and so does one that knows this answer no more. */
  async broken(source) {
    this.isPast = true;
    this.line.begin("lost", line("lost"));
    if (source.readyState !== EventSource.CLOSED) return;
    const isGone = await this.isGone();
    if (source !== this.source || this.hears.signal.aborted) return;
    if (isGone) {
      this.end("failed", line("gone"));
    } else {
      this.again = setTimeout(() => this.follow(), this.wait);
      this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
    }
  }

  /** Whether the server says that there is no such answer. */
  async isGone() {
    const stop = new AbortController();
    try {
      return [401, 403, 404].includes((await fetch(this.element.dataset.events, { signal: stop.signal })).status);
    } catch {
      return false; // it can't be reached
    } finally {
      stop.abort();
    }
  }

  end(state, note, advice = "") {
    this.leave();
    this.view.finish(this.text);
    this.line.end(state, note, advice);
    document.dispatchEvent(new CustomEvent("answer:over", { detail: this.generation }));
    this.over();
  }

  /** Follow it no longer, and touch its message no more. */
  leave() {
    this.hears.abort();
    this.source.close();
    for (const timer of [this.again, this.going, this.hiding]) clearTimeout(timer);
    this.tell(null);
  }
}
