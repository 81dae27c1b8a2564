"""Figures of a generation's life, as its page shows them."""

from __future__ import annotations

from django import template

from inference.admin import units

register = template.Library()
register.filter(units.lasted)
register.filter(units.mebibytes)
