"""Every word that people read is there in each language."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po
from django.conf import settings

from .served import ROOT

LANGUAGES = [code for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
CATALOGS = ["dashboard/{}/django", "dashboard/{}/djangojs", "inference/{}/django"]
MARKS = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy", "pgettext"}
SCRIPT_TEXT = re.compile(r'\b(?:n?gettext)\(\s*"((?:[^"\\]|\\.)*)"')
TEMPLATE_TEXT = re.compile(r'{% ?trans(?:late)? (?:"([^"]*)"|\'([^\']*)\')')
TEMPLATE_BLOCK = re.compile(r"{% ?blocktrans(?:late)?\b([^%]*)%}(.*?){% ?(?:plural|endblocktrans)", re.S)
NAMED = re.compile(r"%\((\w+)\)s")


def path(catalog: str, language: str, suffix: str) -> Path:
    app, name = catalog.split("/{}/")
    return ROOT / app / "locale" / language / "LC_MESSAGES" / f"{name}.{suffix}"


def read(catalog: str, language: str) -> Catalog:
    with path(catalog, language, "po").open("rb") as file:
        return read_po(file, locale=language)


def messages(catalog: str, language: str) -> list[Message]:
    return [message for message in read(catalog, language) if message.id]


def texts(message: Message) -> tuple[list[str], list[str]]:
    """What it says in English and in the other language: one text each, or singular and plural."""
    pairs = (message.id, message.string)
    both = [one if isinstance(one, tuple | list) else (one,) for one in pairs]
    english, other = ([str(text or "") for text in one] for one in both)
    return english, other


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("catalog", CATALOGS)
def test_nothing_is_left_untranslated(catalog, language):
    for message in messages(catalog, language):
        assert not message.fuzzy, message.id
        assert all(texts(message)[1]), message.id


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("catalog", CATALOGS)
def test_a_translation_fills_in_the_same_values(catalog, language):
    for message in messages(catalog, language):
        english, other = texts(message)
        known = set(NAMED.findall(" ".join(english)))
        for text in other:
            assert set(NAMED.findall(text)) <= known, message.id
        assert set(NAMED.findall(other[-1])) == set(NAMED.findall(english[-1])), message.id


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("catalog", CATALOGS)
def test_the_compiled_catalog_is_the_one_that_was_written(catalog, language):
    with path(catalog, language, "mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for message in messages(catalog, language):
        english, other = texts(message)
        context = f"{message.context}\x04" if message.context else ""
        if len(english) == 1:
            assert compiled.gettext(context + english[0]) == other[0]
        else:
            said = [compiled.ngettext(context + english[0], english[1], n) for n in (1, 2)]
            assert said == other


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_in_the_sources_is_in_a_catalog(language):
    for app in ("dashboard", "inference"):
        known = set(ids(f"{app}/{{}}/django", language))
        for source in (*in_python(ROOT / app), *in_templates(ROOT / app)):
            assert source in known
    scripts = set(ids("dashboard/{}/djangojs", language))
    for source in in_scripts(ROOT / "dashboard/static/dashboard"):
        assert source in scripts


def ids(catalog: str, language: str) -> Iterator[str]:
    return (texts(message)[0][0] for message in messages(catalog, language))


def in_python(folder: Path) -> Iterator[str]:
    for file in folder.rglob("*.py"):
        text = file.read_text()
        if "django.utils.translation" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKS:
                argument = node.args[node.func.id == "pgettext"]
                if isinstance(argument, ast.Constant):
                    yield str(argument.value)


def in_templates(folder: Path) -> Iterator[str]:
    for file in folder.rglob("templates/**/*.html"):
        text = file.read_text()
        for found in TEMPLATE_TEXT.finditer(text):
            yield found[1] or found[2]
        for options, block in TEMPLATE_BLOCK.findall(text):
            lines = [line.strip() for line in block.split("\n")]
            words = " ".join(line for line in lines if line) if "trimmed" in options else block
            yield re.sub(r"{{ ?(\w+) ?}}", r"%(\1)s", words.replace("%", "%%"))


def in_scripts(folder: Path) -> Iterator[str]:
    for file in folder.glob("*.js"):
        for found in SCRIPT_TEXT.findall(file.read_text()):
            yield ast.literal_eval(f'"{found}"')
