/** Keep the newest text in view, but never pull down a reader who has scrolled up. */

const NEAR = 48; // pixels from the end that still count as being there

export class Follower {
  constructor(box, button) {
    this.box = box;
    this.button = button;
    this.pinned = true;
    box.addEventListener("scroll", () => this.look(), { passive: true });
    button.addEventListener("click", () => this.toEnd());
    new ResizeObserver(() => this.keep()).observe(box);
  }

  look() {
    const { scrollHeight, scrollTop, clientHeight } = this.box;
    this.pinned = scrollHeight - scrollTop - clientHeight < NEAR;
    this.button.hidden = this.pinned;
  }

  /** Call after the content grew. */
  keep() {
    if (this.pinned) this.box.scrollTop = this.box.scrollHeight;
  }

  toEnd() {
    this.pinned = true;
    this.button.hidden = true;
    this.keep();
  }
}
