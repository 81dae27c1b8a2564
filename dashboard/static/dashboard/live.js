/** A WebSocket that comes back: 0.5 s after a loss, then twice as long each time, 15 s at most; and at once when the
    network is there again or the page is seen again. */

const FIRST = 500;
const LONGEST = 15000;
const SILENCE = 6000; // the server speaks every two seconds: a line that is silent for so long is dead

/**
 * Follow `path`, or what it returns when it is a function. `on.open(send)` can ask for something each time it is
 * connected; `on.message(data)` gets each JSON message; `on.lost(since, code)` tells that none can come now.
 */
export function live(path, on) {
  let wait = FIRST;
  let lost = null;
  let heard = new Date();
  let next = 0; // the timer of the next attempt
  let check = () => {}; // whether this one still lives

  function connect() {
    next = 0;
    const url = new URL(typeof path === "function" ? path() : path, location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url);
    let alarm = setTimeout(() => gone(1006), SILENCE);
    let isOver = false;
    check = () => isOver || Date.now() - heard < SILENCE || gone(1006);
    heard = new Date();

    function gone(code) {
      if (isOver) return;
      isOver = true;
      clearTimeout(alarm);
      removeEventListener("offline", offline);
      socket.close();
      lost ??= heard;
      on.lost(lost, code);
      if (code === 4403) return; // signed out, or not staff: trying again would not help
      next = setTimeout(connect, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, LONGEST);
    }

    const offline = () => gone(1006); // the socket itself would notice after minutes
    addEventListener("offline", offline);
    socket.onopen = () => on.open?.((data) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(data)));
    socket.onmessage = (event) => {
      if (isOver) return;
      clearTimeout(alarm);
      alarm = setTimeout(() => gone(1006), SILENCE);
      wait = FIRST;
      lost = null;
      heard = new Date();
      on.message(JSON.parse(event.data));
    };
    socket.onclose = (event) => gone(event.code);
  }

  function now() {
    if (document.hidden) return;
    check();
    if (!next) return;
    clearTimeout(next);
    wait = FIRST;
    connect();
  }

  // Timers may not count the time for which a machine slept; its clock does.
  setInterval(() => check(), 1000);
  window.addEventListener("online", now);
  document.addEventListener("visibilitychange", now);
  connect();
}
