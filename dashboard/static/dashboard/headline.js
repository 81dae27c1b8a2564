/** The state of everything in one sentence. */

import { duration } from "./time.js";

const LONG_WAIT = 30; // seconds from which a wait is worth a look
const STUCK = 20; // seconds without a step, though somebody is in a slot
const DEAF = 3; // seconds after which a worker's picture is not of now

const number = new Intl.NumberFormat();
const chats = (n) => `${number.format(n)} ${n === 1 ? "chat" : "chats"}`;
const are = (n) => (n === 1 ? "is" : "are");
const longest = (waiting, now) => `${waiting.length === 1 ? "it" : "the longest"} has waited ${duration(Math.max(...waiting.map(({ since }) => now - since)))}`;

/** {level: "good" | "busy" | "bad", word, text} of the workers' snapshots; `now` is by the server's clock. */
export function headline(snapshots, now) {
  if (!snapshots.length) return { level: "bad", word: "Down.", text: "No worker is running: chats wait until one is." };
  const silent = snapshots.filter((one) => now - one.at > DEAF);
  const stuck = snapshots.filter((one) => now - one.taken_at > STUCK && one.slots.some((slot) => ["prefill", "decode", "parking", "resuming"].includes(slot.state)));
  const draining = snapshots.filter((one) => one.state === "draining");
  const parked = snapshots.flatMap((one) => one.parked.filter((chat) => !chat.held));
  const held = snapshots.flatMap((one) => one.parked.filter((chat) => chat.held));
  const queue = snapshots.flatMap((one) => one.queue);
  const waits = [...parked, ...queue].map((chat) => now - chat.since);

  const said = [];
  for (const one of silent) said.push(`Worker ${one.worker} has not been heard of for ${duration(now - one.at)}.`);
  for (const one of stuck) said.push(`Worker ${one.worker} has made no step for ${duration(now - one.taken_at)}.`);
  if (parked.length) said.push(`${chats(parked.length)} ${are(parked.length)} parked; ${longest(parked, now)}${wanted(snapshots, parked)}.`);
  if (queue.length) said.push(`${chats(queue.length)} ${are(queue.length)} in the queue; ${longest(queue, now)}${parked.length ? "" : wanted(snapshots, queue)}.`);
  if (!waits.length) said.push("Nobody waits.");
  if (held.length) said.push(`${chats(held.length)} ${are(held.length)} held by an operator.`);
  if (draining.length) said.push(draining.length === snapshots.length ? "No worker takes new chats: all are draining." : `${draining.length} of ${snapshots.length} workers ${are(draining.length)} draining.`);

  if (silent.length || stuck.length) return { level: "bad", word: "Something is wrong.", text: said.join(" ") };
  if (Math.max(0, ...waits) >= LONG_WAIT) return { level: "busy", word: "Waits are long.", text: said.join(" ") };
  if (draining.length === snapshots.length) return { level: "busy", word: "Draining.", text: said.join(" ") };
  return { level: "good", word: "Healthy.", text: said.join(" ") };
}

/** What the one who has waited longest of these waits for, if it is the head of its worker's line. */
function wanted(snapshots, waiting) {
  const first = waiting.reduce((a, b) => (b.since < a.since ? b : a));
  const head = snapshots.map((one) => one.head).find((one) => one?.generation === first.generation);
  const wished = head && wish(head);
  return wished ? ` for ${wished}` : "";
}

/** What the head of a line waits for: "180 cells", or "a slot"; "" when it is about to come in. */
export function wish(head) {
  if (!head.slots) return "a slot";
  return head.needs > head.free ? `${number.format(head.needs)} cells` : "";
}
