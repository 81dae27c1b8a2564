"""A timeline of the slots as an SVG: who had which slot when, and how many waited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from xml.sax.saxutils import escape

from .run import Result

WIDTH, ROW, GAP, LEFT, TOP = 1200, 28, 6, 90, 54
LINE_HEIGHT = 90  # of the curve of waiting chats
HUES = 12


def svg(result: Result, start: float = 0.0, seconds: float = 120.0) -> str:
    """The timeline from `start` on, in seconds of the simulation; an empty one is drawn as well."""
    machine = result.machine
    end = start + seconds
    n_slots = machine.n_slots
    line_top = TOP + n_slots * (ROW + GAP) + 20
    height = line_top + LINE_HEIGHT + 40
    scale = (WIDTH - LEFT - 20) / seconds

    def x(at: float) -> float:
        return LEFT + (min(max(at, start), end) - start) * scale

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(_title(result))}</text>',
        f'<text x="{LEFT}" y="40" fill="#666">a colour is a chat, a dark edge its return after a park</text>',
    ]
    for slot in range(n_slots):
        y = TOP + slot * (ROW + GAP)
        out.append(f'<text x="10" y="{y + ROW * 0.65:.0f}">slot {slot}</text>')
        out.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - 20}" height="{ROW}" fill="#f2f2f2"/>')
    seen: set[int] = set()
    for stay in sorted(machine.stays, key=lambda s: s.start):
        returned = stay.chat.id in seen
        seen.add(stay.chat.id)
        if stay.end <= start or stay.start >= end:
            continue
        y, left, width = TOP + stay.slot * (ROW + GAP), x(stay.start), x(stay.end) - x(stay.start)
        hue = 360 / HUES * (5 * stay.chat.id % HUES)
        label = f"chat {stay.chat.id}: {stay.start:.2f} s to {stay.end:.2f} s"
        out.append(
            f'<rect x="{left:.1f}" y="{y}" width="{max(width, 0.5):.1f}" height="{ROW}" '
            f'fill="hsl({hue:.0f} 60% 70%)"><title>{label}</title></rect>'
        )
        if returned:
            out.append(f'<rect x="{left:.1f}" y="{y}" width="1.5" height="{ROW}" fill="#333"/>')
        if width > 9 * len(str(stay.chat.id)):
            out.append(f'<text x="{left + 4:.1f}" y="{y + ROW * 0.65:.0f}">{stay.chat.id}</text>')
    out += _waiting(result, start, end, line_top, x)
    for i in range(11):
        at = start + seconds * i / 10
        out.append(f'<text x="{x(at):.1f}" y="{height - 12}" text-anchor="middle">{at:g} s</text>')
    return "\n".join([*out, "</svg>", ""])


def _title(result: Result) -> str:
    s = result.scenario
    turns = f"rotation after {s.rotate_after:g} s" if s.rotate_after > 0 else "no rotation"
    if not s.parking:
        turns = "no parking"
    return f"{s.workload}: {s.chats} chats, {s.slots} slots, {s.cells} cells, {turns}"


def _waiting(
    result: Result, start: float, end: float, top: int, x: Callable[[float], float]
) -> Iterator[str]:
    """The number of waiting chats, as an area of steps."""
    before, shown = 0, []
    for at, n in result.machine.waiting_over_time:
        if at < start:
            before = n
        elif at < end:
            shown.append((at, n))
    points = [(start, before), *shown]
    most = max(1, *(n for _, n in points)) if len(points) > 1 else max(1, before)
    bottom = top + LINE_HEIGHT

    def y(n: int) -> float:
        return bottom - n / most * LINE_HEIGHT

    path = f"M{x(start):.1f} {bottom}"
    for at, n in points:
        path += f"H{x(at):.1f}V{y(n):.1f}"
    yield f'<text x="10" y="{top + 12}">{most} wait</text><text x="10" y="{bottom}">0</text>'
    yield f'<path d="{path}H{x(end):.1f}V{bottom}Z" fill="#ccd6e6" stroke="#5577aa"/>'
