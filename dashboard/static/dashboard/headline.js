/** The state of everything in one sentence. */

import { number } from "./numbers.js";
import { duration } from "./time.js";
import { fill, gettext, ngettext } from "./words.js";

const LONG_WAIT = 30; // seconds from which a wait is worth a look
const STUCK = 20; // seconds without a step, though somebody is in a slot
const DEAF = 3; // seconds after which a worker's picture is not of now

const longest = (waiting, now, snapshots) => {
  const time = duration(Math.max(...waiting.map(({ since }) => now - since)));
  const what = snapshots ? wanted(snapshots, waiting) : "";
  return what
    ? fill(ngettext("it has waited %(time)s for %(what)s", "the longest has waited %(time)s for %(what)s", waiting.length), { time, what })
    : fill(ngettext("it has waited %(time)s", "the longest has waited %(time)s", waiting.length), { time });
};
/** `words` with its count. */
const counted = (words, n, values = {}) => fill(words, { n: number(n), ...values });

/** {level: "good" | "busy" | "bad", word, text} of the workers' snapshots; `now` is by the server's clock. */
export function headline(snapshots, now) {
  if (!snapshots.length) return { level: "bad", word: gettext("Down."), text: gettext("No worker is running: chats wait until one is.") };
  const silent = snapshots.filter((one) => now - one.at > DEAF);
  const stuck = snapshots.filter((one) => now - one.taken_at > STUCK && one.slots.some((slot) => ["prefill", "decode", "parking", "resuming"].includes(slot.state)));
  const draining = snapshots.filter((one) => one.state === "draining");
  const parked = snapshots.flatMap((one) => one.parked.filter((chat) => !chat.held));
  const held = snapshots.flatMap((one) => one.parked.filter((chat) => chat.held));
  const queue = snapshots.flatMap((one) => one.queue);
  const waits = [...parked, ...queue].map((chat) => now - chat.since);

  const said = [];
  for (const one of silent) said.push(fill(gettext("Worker %(worker)s has not been heard of for %(time)s."), { worker: one.worker, time: duration(now - one.at) }));
  for (const one of stuck) said.push(fill(gettext("Worker %(worker)s has made no step for %(time)s."), { worker: one.worker, time: duration(now - one.taken_at) }));
  if (parked.length) said.push(counted(ngettext("%(n)s chat is parked; %(wait)s.", "%(n)s chats are parked; %(wait)s.", parked.length), parked.length, { wait: longest(parked, now, snapshots) }));
  if (queue.length) said.push(counted(ngettext("%(n)s chat is in the queue; %(wait)s.", "%(n)s chats are in the queue; %(wait)s.", queue.length), queue.length, { wait: longest(queue, now, parked.length ? null : snapshots) }));
  if (!waits.length) said.push(gettext("Nobody waits."));
  if (held.length) said.push(counted(ngettext("%(n)s chat is held by an operator.", "%(n)s chats are held by an operator.", held.length), held.length));
  if (draining.length) said.push(draining.length === snapshots.length
    ? gettext("No worker takes new chats: all are draining.")
    : counted(ngettext("%(n)s of %(all)s workers is draining.", "%(n)s of %(all)s workers are draining.", draining.length), draining.length, { all: snapshots.length }));

  if (silent.length || stuck.length) return { level: "bad", word: gettext("Something is wrong."), text: said.join(" ") };
  if (Math.max(0, ...waits) >= LONG_WAIT) return { level: "busy", word: gettext("Waits are long."), text: said.join(" ") };
  if (draining.length === snapshots.length) return { level: "busy", word: gettext("Draining."), text: said.join(" ") };
  return { level: "good", word: gettext("Healthy."), text: said.join(" ") };
}

/** What the one who has waited longest of these waits for, if it is the head of its worker's line. */
function wanted(snapshots, waiting) {
  const first = waiting.reduce((a, b) => (b.since < a.since ? b : a));
  const head = snapshots.map((one) => one.head).find((one) => one?.generation === first.generation);
  return head ? wish(head) : "";
}

/** What the head of a line waits for: "180 cells", or "a slot"; "" when it is about to come in. */
export function wish(head) {
  if (!head.slots) return gettext("a slot");
  return head.needs > head.free ? counted(ngettext("%(n)s cell", "%(n)s cells", head.needs), head.needs) : "";
}
