/** What a reader is told of an answer on its way: in which state it is, why, and what it waits for. */

import { number } from "./numbers.js";
import { duration } from "./time.js";
import { fill, gettext, locale, ngettext } from "./words.js";

/** A state in one word, for the chat list. */
export const WORDS = {
  waiting: gettext("waiting"),
  reading: gettext("reading"),
  writing: gettext("writing"),
  paused: gettext("paused"),
  resuming: gettext("paused"),
  held: gettext("held"),
  moving: gettext("moving"),
};

const PAUSED = {
  admission: gettext("Paused until there is room for your message"),
  rotation: gettext("Paused to let a chat go on that has waited longer"),
  priority: gettext("Paused for a chat that goes first"),
  forced: gettext("Paused by the server"),
  hand: gettext("Paused: an operator has released it, and it waits for its turn"),
  client: gettext("Paused until it is taken up again"),
};

const LINES = {
  waiting: gettext("Waiting for a place…"),
  absent: gettext("The model is not running. Your message is kept and will be answered when it is back."),
  reading: gettext("Reading the chat…"),
  writing: gettext("Writing…"),
  held: gettext("Held by an operator"),
  moving: gettext("Moving to another worker: the one that was writing has stopped"),
  lost: gettext("Connection lost. Reconnecting…"),
  gone: gettext("This answer can't be followed any more. Reload the page."),
};

/** The state of an answer that was parked for this cause. */
export const parked = (cause) => (cause === "hand" ? "held" : cause === "worker" ? "moving" : "paused");

/** The words for a state, which are said when it begins. */
export function line(state, cause = "") {
  if (state === "paused") return PAUSED[cause] ?? gettext("Paused while another chat finishes");
  return LINES[state] ?? "";
}

/** It goes on, after so many seconds. */
export const resumed = (waited) => fill(gettext("Resumed after %(time)s"), { time: duration(waited) });

const rules = new Intl.PluralRules(locale, { type: "ordinal" });
const PLACES = {
  one: gettext("%(n)sst in the queue"),
  two: gettext("%(n)snd in the queue"),
  few: gettext("%(n)srd in the queue"),
  other: gettext("%(n)sth in the queue"),
};

/** What changes while a state lasts, which is shown and not said: a chat of the feed in words. "" for nothing. */
export function detail({ state, turn, needs, done, total }) {
  switch (state) {
    case "waiting":
      if (!turn) return "";
      return turn === 1 ? join(gettext("next in the queue"), room(needs)) : fill(PLACES[rules.select(turn)], { n: number(turn) });
    case "reading":
      return total ? fill(gettext("%(done)s of %(total)s tokens"), { done: number(done), total: number(total) }) : "";
    case "held":
      return gettext("goes on when it is released");
    case "resuming":
      return gettext("about to go on");
    case "paused":
    case "moving":
      if (!turn) return "";
      if (turn === 1) return join(gettext("next to go on"), room(needs));
      return fill(ngettext("%(n)s chat goes before it", "%(n)s chats go before it", turn - 1), { n: number(turn - 1) });
  }
  return "";
}

const join = (...parts) => parts.filter(Boolean).join(", ");
const room = (needs) => (needs ? fill(gettext("waits for room for about %(n)s tokens"), { n: number(needs) }) : "");
