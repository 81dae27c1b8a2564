"""From token pieces to text that is certain: whole characters, and nothing that may be a stop string."""

from __future__ import annotations

import codecs


class TextAssembler:
    """Feed it the bytes of each token; it returns the text that can be shown.

    `stopping_word` is the stop string that was met, and then `push` must not be called again.
    """

    def __init__(self, stop: tuple[str, ...] = ()) -> None:
        self._stop = stop
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self.stopping_word = ""

    def push(self, piece: bytes) -> str:
        text = self._held + self._decoder.decode(piece)
        if not self._stop:
            return text
        found = [(i, word) for word in self._stop if (i := text.find(word)) >= 0]
        if found:
            at, self.stopping_word = min(found, key=lambda pair: pair[0])
            self._held = ""
            return text[:at]
        held = max(_overlap(text, word) for word in self._stop)
        self._held = text[len(text) - held :] if held else ""
        return text[: len(text) - held]

    def flush(self) -> str:
        """What was held back, now that no token follows. Half a character is dropped."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, word: str) -> int:
    """The length of the longest end of `text` that is a beginning of `word`."""
    for n in range(min(len(text), len(word) - 1), 0, -1):
        if text.endswith(word[:n]):
            return n
    return 0
