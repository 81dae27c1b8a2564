/** Server's markup into a page that is in use: what has not changed stays as it is, with all that a person does there. */

import { soon } from "./pace.js";
import { ours } from "./sanitise.js";

const AT_ONCE = 5; // elements
const seen = new WeakMap(); // an element -> its markup, as the server last gave it
let learning = Promise.resolve();

/** What an element is known by among its siblings. */
const nameOf = (element) => element.id || element.dataset.chat || element.textContent;

/** The markup of an element, without the texts of messages, which stay as they are when the rest does. */
function markup(element) {
  const copy = element.cloneNode(true);
  copy.querySelector(".text")?.replaceChildren();
  for (const token of copy.querySelectorAll("[name=csrfmiddlewaretoken]")) token.remove();
  return copy.outerHTML;
}

/** Remember what the page brought. Call it before anything is done with it. Once the page has been drawn it is made alike
    to what comes later, which is sanitised. */
export function learn(elements) {
  const all = [...elements].map((element) => [element, markup(element)]);
  const isDone = new Promise((done) => {
    const learnSome = (until) => {
      do {
        const some = all.splice(0, AT_ONCE);
        const alike = ours(some.map(([, markup]) => markup).join("")).children;
        [...alike].forEach((copy, i) => seen.set(some[i][0], copy.outerHTML));
      } while (all.length && performance.now() < until);
      if (!all.length) done();
      return !all.length;
    };
    setTimeout(() => soon(learnSome));
  });
  learning = Promise.all([learning, isDone]);
}

/** Resolves when all of it is remembered, before which nothing can be compared. */
export const learned = () => learning;

/** Whether a person is writing in it. */
const isEdited = (element) => "editing" in element.dataset || element.querySelector("[data-editing]") || element.contains(document.activeElement?.closest("textarea, input"));

/** Whether `there` shows what `wanted` says. */
function stays(there, wanted, markup) {
  if (there === wanted || seen.get(there) === markup || isEdited(there)) return true;
  const { generation, state, versions, events } = there.dataset;
  if (!generation || generation !== wanted.dataset.generation) return false;
  if (events) return true; // its end comes by its stream
  if (state !== wanted.dataset.state || versions !== wanted.dataset.versions) return false;
  seen.set(there, markup); // it has ended here
  return true;
}

/**
 * Make `wanted` (elements as the server gave them, or children that stay) the children of `parent`; `isKept(child)` of
 * one that is not among them. Whether anything was touched.
 */
export function reconcile(parent, wanted, isKept = () => false) {
  const old = new Map([...parent.children].map((child) => [nameOf(child), child]));
  const marks = new Map(wanted.filter((element) => element.parentNode !== parent).map((fresh) => [fresh, markup(fresh)]));
  let isTouched = false;
  let at = parent.firstElementChild;
  for (const element of wanted) {
    const there = old.get(nameOf(element));
    old.delete(nameOf(element));
    const stay = there && stays(there, element, marks.get(element)) ? there : element;
    if (stay !== there) {
      seen.set(stay, marks.get(stay));
      isTouched = true;
      if (there) {
        exchange(there, stay);
        if (at === there) at = stay;
      }
    }
    if (stay === at) {
      at = at.nextElementSibling;
    } else {
      place(parent, stay, at);
      isTouched = true;
    }
  }
  for (const child of old.values()) {
    if (isKept(child) || isEdited(child)) continue;
    child.remove();
    isTouched = true;
  }
  return isTouched;
}

/** What has the focus keeps it on its way, and a field that is written in does not notice. */
function place(parent, element, at) {
  if (element.parentNode === parent && parent.moveBefore) return parent.moveBefore(element, at);
  const focused = element.contains(document.activeElement) && document.activeElement;
  parent.insertBefore(element, at);
  if (focused) focused.focus({ preventScroll: true });
}

/** The focus goes over to what takes the place of the element that had it. */
function exchange(there, stay) {
  const tag = there.contains(document.activeElement) ? document.activeElement.tagName : "";
  there.replaceWith(stay);
  if (tag) (stay.tagName === tag ? stay : stay.querySelector(tag))?.focus({ preventScroll: true });
}
