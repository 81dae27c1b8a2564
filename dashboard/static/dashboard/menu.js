/** A menu that many buttons open (`popovertarget`): arrows move in it, Escape and Tab close it and give the focus back. */

export class Menu {
  /** `opened(button)` before it is shown; `chosen(what, button)` for an item with data-do. */
  constructor(element, { opened, chosen }) {
    this.element = element;
    this.button = null;
    addEventListener("click", ({ target }) => {
      this.button = target.closest?.(`[popovertarget="${element.id}"]`) ?? this.button;
    }, { capture: true });
    element.addEventListener("beforetoggle", ({ newState }) => {
      if (newState === "open") opened(this.button);
    });
    element.addEventListener("toggle", ({ newState }) => {
      this.button.setAttribute("aria-expanded", String(newState === "open"));
      if (newState === "open") this.show();
    });
    element.addEventListener("click", ({ target }) => {
      const item = target.closest("[role=menuitem]");
      if (!item) return;
      element.hidePopover();
      if (item.dataset.do) chosen(item.dataset.do, this.button);
    });
    element.addEventListener("keydown", (event) => this.pressed(event));
    addEventListener("resize", () => element.hidePopover());
  }

  get items() {
    return [...this.element.querySelectorAll("[role=menuitem]:not([hidden])")];
  }

  show() {
    const { element } = this;
    const at = this.button.getBoundingClientRect();
    const left = at.left + element.offsetWidth + 8 > innerWidth ? at.right - element.offsetWidth : at.left;
    const below = at.bottom + 4 + element.offsetHeight < innerHeight;
    element.style.left = `${Math.max(8, left)}px`;
    element.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - element.offsetHeight - 4)}px`;
    this.items[0].focus();
  }

  pressed(event) {
    const { items } = this;
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1 }[event.key];
    if (to !== undefined) items[to % items.length].focus();
    else if (event.key === "Tab") this.element.hidePopover();
    else return;
    event.preventDefault();
  }
}
