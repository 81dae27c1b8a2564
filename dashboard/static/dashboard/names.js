/** What a chat is called: by its owner or, without one, by the beginning of its id. */

const short = ({ generation }) => `chat ${generation.slice(0, 6)}`;

/** Whose it is; "–" of nobody's. */
export const nameOf = (one) => one.owner || (one.generation ? short(one) : "–");

/** It, in a sentence: "grace's chat". */
export const chatOf = (one) => (one.owner ? `${one.owner}'s chat` : one.generation ? short(one) : "a chat");
