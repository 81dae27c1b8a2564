/** A chat that somebody shares: its answers as Markdown. */

import { copyCode } from "./clipboard.js";
import { drawAll } from "./painter.js";

const messages = document.getElementById("messages");
drawAll(messages);
copyCode(messages);
