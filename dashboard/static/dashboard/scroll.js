/** Keep the newest text in view, but never pull down a reader who has scrolled up. */

const NEAR = 48; // pixels from the end at which a reader who scrolls down has come there

export class Follower {
  constructor(box, button) {
    this.box = box;
    this.button = button;
    this.pin(true);
    box.addEventListener("scroll", () => this.look(), { passive: true });
    button.addEventListener("click", () => this.toEnd());
    const keep = new ResizeObserver(() => this.keep());
    for (const element of [box, box.firstElementChild]) keep.observe(element);
  }

  /** Only a reader scrolls up, and by however little: they are let go at once. */
  look() {
    const { scrollHeight, scrollTop, clientHeight } = this.box;
    const left = scrollHeight - scrollTop - clientHeight;
    if (left <= 1) this.pin(true); // also when the content has shrunk
    else if (scrollTop < this.at - 1) this.pin(false);
    else if (scrollTop > this.at && left < NEAR) this.pin(true);
    this.at = scrollTop;
  }

  pin(isPinned) {
    this.pinned = isPinned;
    this.button.hidden = isPinned;
    // What is being read stays where it is when something above it grows.
    this.box.style.overflowAnchor = isPinned ? "none" : "auto";
    this.at ??= this.box.scrollTop;
  }

  /** Call after the content grew. */
  keep() {
    if (!this.pinned) return;
    this.box.scrollTop = this.box.scrollHeight;
    this.at = this.box.scrollTop;
  }

  toEnd() {
    this.pin(true);
    this.keep();
  }
}
