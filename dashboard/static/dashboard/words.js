/** The page's language: what base.html loaded from the catalog of translations, or English where it could not be. */

const { lang } = document.documentElement;

/** For numbers and times: the browser's own kind of the page's language, so that en-GB stays what it is. */
export const locale = navigator.languages.find((one) => one.split("-")[0] === lang) ?? (lang || "en");

/** `text` in the page's language. The catalog's object `django` is no way to it: the admin's scripts put another there. */
export const gettext = globalThis.gettext ?? ((text) => text);

/** One of two texts by a number, in the page's language. */
export const ngettext = globalThis.ngettext ?? ((one, many, n) => (n === 1 ? one : many));

/** `text` with its `%(name)s` filled in from an object. */
export const fill = (text, values) => text.replace(/%\((\w+)\)s/g, (_, name) => String(values[name]));
