/** A WebSocket that comes back: 0.5 s after a loss, then twice as long each time, 15 s at most. */

const FIRST = 500;
const LONGEST = 15000;

/** Follow `path`. `on.message(data)` gets each JSON message; `on.lost(since, code)` tells that none can come now. */
export function live(path, on) {
  const url = new URL(path, location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  let wait = FIRST;
  let lost = null;

  function connect() {
    const socket = new WebSocket(url);
    socket.onmessage = (event) => {
      wait = FIRST;
      lost = null;
      on.message(JSON.parse(event.data));
    };
    socket.onclose = (event) => {
      lost ??= new Date();
      on.lost(lost, event.code);
      if (event.code === 4403) return; // signed out, or not staff: trying again would not help
      setTimeout(connect, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, LONGEST);
    };
  }
  connect();
}
