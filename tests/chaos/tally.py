"""What became of each generation, and the counts.

A generation is counted from its client's view. It *starts* when the client asks for it, and has exactly one
end:

- identical: its client, or the page later on, has the whole text, and every character is as in an
  undisturbed run;
- cancelled: its client left or stopped it, and wanted nothing more of it;
- failed: its client was told why, by the message of an error, in the body or in the stream. For an answer
  that is not streamed, and for a click in the page, a connection that is cut is told too: nothing was shown
  yet, and both are asked again as a new generation;
- lost: anything else. Another text, a stream that cannot be gone on with, silence.

A request that is refused with `Retry-After` has not started; its client asks again when it was told to.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

End = Literal["identical", "cancelled", "failed", "different", "lost"]


class Outcome(NamedTuple):
    end: End
    reason: str = ""
    generation: str = ""  # of a page: its id, by which its answer is looked up at the end of the run


@dataclass
class Tally:
    ends: Counter[End] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)  # one line for each that was lost
    answered: int = 0  # requests whose client had its answer, or what it wanted of it
    requests: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    reconnects: int = 0
    parks: int = 0  # of which clients were told
    taken_over: int = 0  # generations that another incarnation of a worker went on with
    left_behind: dict[str, int] = field(default_factory=dict)  # what the stack still held when all was over

    def add(self, outcome: Outcome, about: str) -> None:
        self.ends[outcome.end] += 1
        if outcome.end == "failed":
            self.reasons[outcome.reason] += 1
        if outcome.end in ("different", "lost"):
            self.bad.append(f"{about}: {outcome.end}: {outcome.reason}")

    @property
    def started(self) -> int:
        return self.ends.total()

    @property
    def lost(self) -> int:
        """Those with another text too."""
        return self.ends["lost"] + self.ends["different"]

    @property
    def is_good(self) -> bool:
        return not self.lost and not any(self.left_behind.values())

    def report(self) -> str:
        rows: list[tuple[str, object]] = [
            ("started", self.started),
            ("finished", self.ends["identical"] + self.ends["different"]),
            ("  text identical", self.ends["identical"]),
            ("  text different", self.ends["different"]),
            ("cancelled by client", self.ends["cancelled"]),
            ("failed with reason", self.ends["failed"]),
            *(("", f"{n:4} {reason}") for reason, n in self.reasons.most_common()),
            ("lost", self.lost),
            ("taken over", self.taken_over),
            ("requests", self.requests),
            ("  answered in the end", self.answered),
            ("  refused, asked again", self.refused),
            ("reconnects", self.reconnects),
            ("parks told", self.parks),
            ("faults", " ".join(f"{kind} {n}" for kind, n in sorted(self.faults.items())) or "none"),
            ("left behind", " ".join(f"{what} {n}" for what, n in self.left_behind.items())),
        ]
        width = max(len(name) for name, _ in rows)
        return "\n".join([*(f"{name:{width}}  {value}" for name, value in rows), *self.bad])
