/** The settings of a chat. Those of a chat that is not begun wait in the composer and go with its first message. */

import { complain, el } from "./element.js";
import { get } from "./get.js";
import { post } from "./post.js";
import { toast } from "./toast.js";
import { gettext } from "./words.js";

const $ = (id) => document.getElementById(id);
const [dialog, form, error, composer, button] = ["settings", "settings-form", "settings-error", "composer", "open-settings"].map($);
const current = $("main").dataset.chat;
const fields = [...form.querySelectorAll("[name]")];
let chat = ""; // "": the one that is not begun

export async function openSettings(pk) {
  try {
    show(pk ? await get(`/chats/${pk}/settings`) : waiting());
  } catch (problem) {
    return toast(problem.message);
  }
  chat = pk;
  refuse("", {});
  dialog.showModal();
}

function show(values) {
  for (const field of fields) field.value = values[field.name] ?? "";
}

const waiting = () => Object.fromEntries(fields.map(({ name }) => [name, composer.elements[name]?.value ?? ""]));

function wait(values) {
  for (const { name } of fields) {
    composer.elements[name]?.remove();
    if (values[name] !== null && values[name] !== "") composer.append(el("input", { type: "hidden", name, value: values[name] }));
  }
}

/** Say what is wrong, at the first field that is. */
function refuse(message, wrong) {
  complain(error, message);
  for (const field of fields) field.setAttribute("aria-invalid", String(field.name in wrong));
  const first = fields.find(({ name }) => name in wrong);
  if (first) first.after(error);
  else form.lastElementChild.before(error);
  first?.focus();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const values = Object.fromEntries(fields.map(({ name, value }) => [name, value.trim()]));
  try {
    const kept = await post(chat ? `/chats/${chat}/settings` : "/chats/settings", values);
    if (!chat) wait(kept);
    if (chat === current) button.toggleAttribute("data-set", Object.values(kept).some((value) => value !== null && value !== ""));
    dialog.close();
    toast(gettext("Saved. It counts from the next answer on."));
  } catch (problem) {
    refuse(problem.message, problem.fields ?? {});
  }
});

$("settings-close").addEventListener("click", () => dialog.close());
