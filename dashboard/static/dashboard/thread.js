/** The chat that this page shows, and the list of chats, when they have changed elsewhere: in another tab, or on
    another device. */

import { learn, learned, reconcile } from "./reconcile.js";
import { ours } from "./sanitise.js";
import { signedOut } from "./signed_out.js";

const AGAIN = 3000; // milliseconds after which it is tried again

const [messages, list, more, scroll, gone] = ["messages", "chat-list", "more-chats", "scroll", "gone"].map((id) => document.getElementById(id));
const heading = document.querySelector(".bar h1");
let reading = null;
let isStale = false;
let timer = 0;
let writes = 0; // of this page
const told = new Set(); // the chats that have changed

learn(messages.children);
learn(list.children);

/** Read the page anew, and show what is different. One at a time: what changes meanwhile is read once more. */
export async function refresh() {
  isStale = true;
  clearTimeout(timer);
  if (reading) return;
  while (isStale) {
    isStale = false;
    try {
      await (reading = read());
    } catch {
      timer = setTimeout(refresh, AGAIN); // the server can't be reached
    }
    reading = null;
  }
}

async function read() {
  const before = writes;
  const reply = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" }, cache: "no-store" });
  if (reply.redirected) return signedOut();
  if (reply.status === 404) return vanished(true);
  if (!reply.ok) throw new Error(String(reply.status));
  const text = await reply.text();
  await learned();
  if (writes !== before) return void (isStale = true); // it may be from before what was written meanwhile
  const page = ours(text);
  vanished(false);
  showList(page);
  const title = page.querySelector(".bar h1").textContent;
  if (heading.textContent !== title) heading.textContent = title;
  show([...page.querySelector("#messages").children]);
}

/** The chat was deleted, or is there again. */
function vanished(isSo) {
  if (gone.hidden === !isSo) return;
  gone.hidden = !isSo;
  document.dispatchEvent(new CustomEvent("chat:gone", { detail: isSo }));
}

/** The server gave the newest chats alone. Where older ones were fetched too, all stay that are not known to be gone. */
function showList(page) {
  if ("busy" in list.dataset) return;
  const goesOn = list.querySelector("[data-older]") !== null;
  reconcile(list, [...page.querySelector("#chat-list").children], ({ dataset }) => goesOn && dataset.chat && !told.has(dataset.chat));
  told.clear();
  if (goesOn) return;
  const { dataset, hidden } = page.querySelector("#more-chats");
  more.dataset.after = dataset.after;
  more.hidden = hidden;
}

/** These are the messages now. */
function show(wanted) {
  keepPlace(() => {
    if (reconcile(messages, wanted)) document.dispatchEvent(new CustomEvent("thread:changed"));
  });
}

/** Keep all messages up to the one with this primary key (null: none), and put new turns' markup behind it. */
export function put(after, html) {
  const all = [...messages.children];
  const last = after === null ? -1 : all.findIndex(({ id }) => id === `message-${after}`);
  if (after !== null && last < 0) return refresh(); // this page is out of date
  show([...all.slice(0, last + 1), ...ours(html).children]);
}

/** What a reader looks at stays where it is. */
function keepPlace(change) {
  const top = scroll.getBoundingClientRect().top;
  const isNew = new Set(messages.children);
  const looked = [...messages.children].find((message) => message.getBoundingClientRect().bottom > top);
  const before = looked?.getBoundingClientRect().top;
  change();
  if (looked?.isConnected && isNew.has(looked)) scroll.scrollTop += looked.getBoundingClientRect().top - before;
}

document.addEventListener("chat:changed", ({ detail }) => {
  for (const chat of detail ?? []) told.add(String(chat));
  refresh();
});
document.addEventListener("page:written", () => writes++);
document.addEventListener("feed:back", () => isStale && refresh());
window.addEventListener("pageshow", (event) => event.persisted && refresh());
