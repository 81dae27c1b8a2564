// The button that copies a new key.

import { copyFor } from "./clipboard.js";

const button = document.getElementById("copy-key");
button.addEventListener("click", () => copyFor(button, document.getElementById("key").textContent));
button.hidden = false; // without scripts it would do nothing
