/** One answer on its way: its event stream in, its text and its state line out. */

import { Markdown } from "./markdown.js";
import { duration } from "./time.js";

const KINDS = ["waiting", "accepted", "started", "token", "text", "preempted", "released", "resumed", "finished", "failed"];

const PAUSED = "Paused while another chat finishes";
const HELD = "Held by an operator";
const LONGEST_WAIT = 15000;

export class Answer {
  /** `element` is a message with data-events; `painted()` runs after each change, `over()` once at the end. */
  constructor(element, { painted, over }) {
    this.element = element;
    this.stopUrl = element.dataset.stop;
    this.painted = painted;
    this.over = over;
    this.text = element.querySelector(".text").textContent; // of an answer that goes on: what was there before
    this.view = new Markdown(element.querySelector(".text"));
    if (this.text) this.view.show(this.text);
    this.said = element.querySelector(".said");
    this.seconds = element.querySelector(".seconds");
    this.frame = 0;
    this.timer = 0;
    this.state = "waiting";
    this.line = this.said.textContent;
    this.seen = ""; // the id of the last event
    this.wait = 500;
    this.follow();
  }

  follow() {
    const url = new URL(this.element.dataset.events, location.href);
    if (this.seen) url.searchParams.set("after", this.seen);
    this.source = new EventSource(url);
    for (const kind of KINDS) {
      this.source.addEventListener(kind, (event) => {
        this.seen = event.lastEventId || this.seen;
        this.take(kind, JSON.parse(event.data));
      });
    }
    this.source.onopen = () => {
      this.wait = 500;
      this.seconds.hidden = false;
      this.say(this.line);
    };
    this.source.onerror = () => this.broken();
  }

  take(kind, data) {
    switch (kind) {
      case "waiting":
        return this.become("waiting", data.reason);
      case "accepted":
        return this.become("waiting", "Waiting for a place…");
      case "started":
        return this.become("reading", "Reading…");
      case "token":
        return this.write(data);
      case "text": // the whole text at once, out of the database
        this.text = "";
        return this.write(data);
      case "preempted":
        return this.become("parked", data.cause === "hand" ? HELD : PAUSED, data.waited);
      case "released": // the seconds go on
        return this.say((this.line = PAUSED));
      case "resumed":
        return this.text ? this.become("writing", "") : this.become("reading", "Reading…");
      case "finished":
      case "failed":
        this.write(data.text ?? "");
        this.element.toggleAttribute("data-unfinished", Boolean(data.unfinished));
        return this.end(kind, data.note);
    }
  }

  write(text) {
    if (!text) return;
    if (this.state !== "writing") this.become("writing", "");
    this.text += text;
    this.frame ||= requestAnimationFrame(() => this.paint());
  }

  /** However fast tokens come, the page is touched once a frame. */
  paint() {
    this.frame = 0;
    this.view.show(this.text);
    this.painted();
  }

  /** A new state with its line; with `waited`, seconds are counted on from there. */
  become(state, line, waited = null) {
    clearInterval(this.timer);
    this.state = this.element.dataset.state = state;
    this.line = line;
    this.seconds.textContent = "";
    if (waited !== null) {
      const since = performance.now() - waited * 1000;
      const count = () => (this.seconds.textContent = duration((performance.now() - since) / 1000));
      this.timer = setInterval(count, 1000);
      count();
    }
    this.say(line);
  }

  say(line) {
    if (this.said.textContent !== line) this.said.textContent = line;
    this.painted();
  }

  /** EventSource comes back by itself, from the last event it has seen, unless it was answered with an error:
      a server that restarts gives one, and so does one that knows this answer no more. */
  async broken() {
    this.seconds.hidden = true;
    this.say("Connection lost. Reconnecting…");
    if (this.source.readyState !== EventSource.CLOSED) return;
    if (await this.isGone()) {
      this.end("failed", "This answer can't be followed any more. Reload the page.");
    } else {
      setTimeout(() => this.follow(), this.wait);
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

  end(state, note) {
    this.source.close();
    cancelAnimationFrame(this.frame);
    this.paint();
    this.become(state, note);
    this.over();
  }
}
