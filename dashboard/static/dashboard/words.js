/** The page's language: what base.html loaded from the catalog of translations, or English where it could not be. */

const { django = {} } = globalThis;

/** `text` in the page's language. */
export const gettext = django.gettext ?? ((text) => text);

/** One of two texts by a number, in the page's language. */
export const ngettext = django.ngettext ?? ((one, many, n) => (n === 1 ? one : many));

/** `text` with its `%(name)s` filled in from an object. */
export const fill = (text, values) => text.replace(/%\((\w+)\)s/g, (_, name) => String(values[name]));
