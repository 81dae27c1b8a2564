"""Spans of time and sizes as people read them, in their language."""

from __future__ import annotations

from django.utils.formats import number_format


def _decimal(value: float, places: int) -> str:
    return number_format(round(value, places), places)


def lasted(seconds: float | None) -> str:
    """A span of time in the units in which it is best read; a dash where none is known."""
    if seconds is None:
        return "–"
    if not seconds:
        return "0 s"
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{_decimal(seconds, 1)} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def mebibytes(n: int) -> str:
    return f"{_decimal(n / 2**20, 1)} MiB"
