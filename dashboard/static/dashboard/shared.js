/** A chat that somebody shares: its answers as Markdown. */

import { copyCode } from "./clipboard.js";
import { drawAll } from "./painter.js";

drawAll(document);
copyCode(document);
