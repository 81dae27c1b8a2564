/** Work on the page in slices, so that it is never stopped: a few milliseconds a frame, and as much rest as a frame has cost. */

const SLICE = 8; // milliseconds
const tasks = []; // the most urgent first
let isOn = false;

/** Whether all is done. */
export const isIdle = () => tasks.length === 0;

/** Call `task(until)` in the frames to come, until it returns true; it should work until that time of performance.now().
    An urgent task is called before the others. */
export function soon(task, isUrgent = false) {
  if (tasks.includes(task)) return;
  if (isUrgent) tasks.unshift(task);
  else tasks.push(task);
  if (isOn) return;
  isOn = true;
  requestAnimationFrame(frame);
}

function frame() {
  const began = performance.now();
  const until = began + SLICE;
  for (const task of [...tasks]) {
    let isDone = true;
    try {
      isDone = task(until);
    } catch (error) {
      reportError(error); // the others go on
    }
    if (isDone) tasks.splice(tasks.indexOf(task), 1);
    if (performance.now() >= until) break;
  }
  // After this frame was laid out and painted.
  setTimeout(() => {
    isOn = tasks.length > 0;
    const cost = performance.now() - began;
    if (isOn) setTimeout(() => requestAnimationFrame(frame), cost > 2 * SLICE ? cost : 0);
  });
}
