// Names and roles for what the scripts of Django's forms make without them, right after those scripts have made it.

import { gettext } from "./words.js";

// A list that is searched (select2) has the name of the field that it stands for.
function nameSearched(select) {
  const label = document.querySelector(`label[for="${select.id}"]`);
  const shown = document.getElementById(`select2-${select.id}-container`);
  if (!label || !shown) return;
  label.id ||= `${select.id}_label`;
  shown.setAttribute("aria-labelledby", label.id);
  shown.closest("[role=combobox]").setAttribute("aria-labelledby", `${label.id} ${shown.id}`);
}

function opened({ target }) {
  document.querySelector(".select2-search__field")?.setAttribute("aria-label", gettext("Search"));
  const box = document.getElementById(`select2-${target.id}-container`)?.closest("[role=combobox]");
  box?.setAttribute("aria-controls", box.getAttribute("aria-owns"));
}

const $ = globalThis.django?.jQuery;
$?.(() => {
  document.querySelectorAll("select.admin-autocomplete").forEach(nameSearched);
  $(document).on("select2:open", opened);
});

addEventListener("load", () => {
  for (const icon of document.querySelectorAll(".search-label-icon")) icon.setAttribute("role", "img"); // it has a label
});
