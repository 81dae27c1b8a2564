import { gettext } from "./words.js";

/** POST to this site, with the token that the page carries, and return the JSON; throws an Error whose message can be shown,
    with what else the server said of it: `fields`, what is wrong with each. */
export async function post(url, fields = {}, unreachable = gettext("The server can't be reached. Try again.")) {
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  let response;
  try {
    const headers = { Accept: "application/json", "X-CSRFToken": token };
    response = await fetch(url, { method: "POST", headers, body: new URLSearchParams(fields) });
  } catch {
    throw new Error(unreachable);
  }
  if (response.ok) document.dispatchEvent(new CustomEvent("page:written")); // what was read before may not show it
  const isJson = response.headers.get("Content-Type")?.includes("json");
  if (response.ok && isJson) return response.json();
  const { error, ...more } = isJson ? await response.json() : {};
  if (typeof error === "string") throw Object.assign(new Error(error), more); // else it is worded for programs
  if (response.status === 404) throw new Error(gettext("This chat is not there any more."));
  if (response.redirected || response.status === 403) throw new Error(gettext("You have been signed out. Reload the page and sign in again."));
  throw new Error(gettext("The server could not take this. Try again in a moment."));
}
