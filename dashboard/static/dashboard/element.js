/** An element with properties and children; strings become text. `data` are its data attributes, `aria` those of ARIA. */
export function el(tag, properties = {}, ...children) {
  const { data = {}, aria = {}, ...rest } = properties;
  const element = Object.assign(document.createElement(tag), rest);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria)) element.setAttribute(name === "role" ? name : `aria-${name}`, value);
  element.append(...children);
  return element;
}

/** Show an error in its element; "" takes it away. */
export function complain(element, message) {
  element.textContent = message;
  element.hidden = !message;
}

/** A table with a caption that is only heard; columns are [title, class]. */
export function table(label, columns) {
  const body = el("tbody");
  const head = columns.map(([title, className = ""]) => el("th", { scope: "col", className }, title));
  const element = el("table", { className: "table" }, el("caption", { className: "unseen" }, label), el("thead", {}, el("tr", {}, ...head)), body);
  return { element, columns, body };
}

/** Rows are {state, cells}; those that stay are kept in place, so that nothing jumps. */
export function fill({ body, columns }, rows) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach(({ state = "", cells }, i) => {
    const row = body.rows[i] ?? body.appendChild(el("tr", {}, ...columns.map(([, className = ""]) => el("td", { className }))));
    row.dataset.state = state;
    cells.forEach((cell, j) => {
      const place = row.cells[j];
      // What is equal stays: a button keeps the focus, and a click that has begun.
      if (cell instanceof Node) place.firstChild?.isEqualNode(cell) || place.replaceChildren(cell);
      else if (place.textContent !== String(cell)) place.textContent = cell;
    });
  });
}
