import { fill, gettext } from "./words.js";

/** What a chat is called: by its owner or, without one, by the beginning of its id. */

const short = ({ generation }) => fill(gettext("chat %(id)s"), { id: generation.slice(0, 6) });

/** Whose it is; "–" of nobody's. */
export const nameOf = (one) => one.owner || (one.generation ? short(one) : "–");

/** It, in a sentence: "grace's chat". */
export const chatOf = (one) => (one.owner ? fill(gettext("%(owner)s's chat"), one) : one.generation ? short(one) : gettext("a chat"));

/** What is done in a slot, in a word. */
const DOING = {
  idle: gettext("idle"),
  prefill: gettext("reading"),
  decode: gettext("writing"),
  parking: gettext("parking"),
  parked: gettext("parked"),
  resuming: gettext("resuming"),
  held: gettext("held"),
  ready: gettext("ready"),
  loading: gettext("loading"),
  draining: gettext("draining"),
};

/** The word for the state of a slot, a chat or a worker. */
export const stateWord = (state) => DOING[state] ?? state;

/** Why a chat was parked, in a word. */
const CAUSES = {
  pressure: gettext("Pressure"),
  admission: gettext("Admission"),
  forced: gettext("Forced"),
  decode: gettext("Decode"),
  hand: gettext("Hand"),
  rotation: gettext("Rotation"),
  priority: gettext("Priority"),
  worker: gettext("Worker"),
  client: gettext("Client"),
};

/** The word for the cause of a park. */
export const causeWord = (cause) => CAUSES[cause] ?? cause;
