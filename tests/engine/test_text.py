from __future__ import annotations

import pytest

from inference.engine.text import TextAssembler


def feed(assembler: TextAssembler, *pieces: bytes) -> list[str]:
    out = []
    for piece in pieces:
        out.append(assembler.push(piece))
        if assembler.stopping_word:
            break
    return out


def test_half_a_character_waits_for_its_other_half() -> None:
    euro = "€".encode()
    assert feed(TextAssembler(), b"a" + euro[:1], euro[1:2], euro[2:] + b"b") == ["a", "", "€b"]


def test_half_a_character_at_the_end_is_dropped() -> None:
    assembler = TextAssembler()
    assert feed(assembler, b"a\xe2\x82") == ["a"]
    assert assembler.flush() == ""


def test_bytes_that_are_no_character_are_replaced() -> None:
    assert "".join(feed(TextAssembler(), b"a\xff", b"b")) == "a\ufffdb"


def test_text_that_may_become_a_stop_string_is_held_back() -> None:
    assembler = TextAssembler(("STOP",))
    assert feed(assembler, b"a ST", b"O", b"Xb") == ["a ", "", "STOXb"]
    assert feed(assembler, b"S") == [""]
    assert assembler.flush() == "S"


def test_a_stop_string_across_tokens_ends_the_text_before_it() -> None:
    assembler = TextAssembler(("\n\n", "STOP"))
    assert "".join(feed(assembler, b"one\n", b"\ntwo")) == "one"
    assert assembler.stopping_word == "\n\n"
    assert assembler.flush() == ""


@pytest.mark.parametrize("stop", [("b", "abc"), ("abc", "b")])
def test_the_stop_string_that_begins_first_wins(stop: tuple[str, ...]) -> None:
    assembler = TextAssembler(stop)
    assert feed(assembler, b"xabc") == ["x"]
    assert assembler.stopping_word == "abc"
