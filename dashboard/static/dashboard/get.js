/** GET from this site and return the JSON; throws an Error whose message can be shown. */

import { gettext } from "./words.js";

export async function get(url, { signal } = {}) {
  let response;
  try {
    response = await fetch(url, { headers: { Accept: "application/json" }, signal });
  } catch (problem) {
    if (signal?.aborted) throw problem;
    throw new Error(gettext("The server can't be reached. Try again."));
  }
  const isJson = response.headers.get("Content-Type")?.includes("json");
  if (response.ok && isJson) return response.json();
  const { error } = isJson ? await response.json() : {};
  if (typeof error === "string") throw new Error(error); // else it is worded for programs
  if (response.redirected) throw new Error(gettext("You have been signed out. Reload the page and sign in again."));
  if (response.status === 404) throw new Error(gettext("This chat is not there any more."));
  throw new Error(gettext("The server could not answer. Try again in a moment."));
}
