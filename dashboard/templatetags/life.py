"""Figures of a generation's life, as its page shows them."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def lasted(seconds: float) -> str:
    """A span of time in the units in which it is best read."""
    if not seconds:
        return "0 s"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


@register.filter
def mebibytes(n: int) -> str:
    return f"{n / 2**20:.1f} MiB"
