"""Names that can be taken for one another. Django compares them letter by letter, and SQLite tells capitals
from small letters where they are not ASCII."""

from __future__ import annotations

import unicodedata

from django.contrib.auth.models import User
from django.db.models.functions import Length

# Alphabets with letters that look like those of another one.
ALPHABETS = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"}
# Their letters that look like Latin ones, and those, in the same order.
CYRILLIC = str.maketrans("авсеһіјкмнорѕтухѵԁԛԝ", "abcehijkmhopstyxvdqw")
GREEK = str.maketrans("αβγεζηικμνορτυχω", "abyeznikmvoptuxw")
TO_LATIN = CYRILLIC | GREEK


def mixes_alphabets(name: str) -> bool:
    """Whether letters of two alphabets are in it that can look the same."""
    return len(ALPHABETS.intersection(unicodedata.name(letter, "").partition(" ")[0] for letter in name)) > 1


def is_taken(name: str) -> bool:
    """Whether somebody has this name or one that looks like it."""
    shape = _shape(name)
    others = User.objects.annotate(length=Length("username")).filter(length=len(name))
    return any(_shape(other) == shape for other in others.values_list("username", flat=True).iterator())


def _shape(name: str) -> str:
    """The same for names that look the same."""
    return unicodedata.normalize("NFKC", name).casefold().translate(TO_LATIN)
