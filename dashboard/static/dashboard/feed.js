/** What the server tells of a person's chats as it happens: passed on to all of the page that it concerns. */

import { signedOut } from "./signed_out.js";
import { live } from "./live.js";

const NOT_SIGNED_IN = 4403;

const tell = (kind, detail) => document.dispatchEvent(new CustomEvent(kind, { detail }));
let { changes: since } = document.getElementById("main").dataset; // where the changes end that this page shows
let isLost = false;
let last = { chats: {}, ahead: 0 };

/** The last that was told: `chats`, and `ahead`, this browser's clock against the server's in seconds. */
export const latest = () => last;

live(() => `/ws/chats/?since=${encodeURIComponent(since)}`, {
  message(news) {
    if (isLost) tell("feed:back");
    isLost = false;
    since = news.since;
    last = { chats: news.chats, ahead: Date.now() / 1000 - news.now };
    tell("feed:chats", last);
    if (news.changed.length) tell("chat:changed", news.changed);
  },
  lost(_, code) {
    isLost = true;
    if (code === NOT_SIGNED_IN) signedOut();
  },
});
