"""What those hear who wait beside a chat that never ends: nothing here depends on how fast tokens come."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .api import FIRST, FOX, KNIGHT, Reply, body, slots, wait_until_idle
from .stack import Stack

pytestmark = pytest.mark.model

LONG = " ".join([FOX] * 40)  # finds no room beside the neighbour, whose context is never less than half full


@pytest.fixture
def neighbour(endless: Stack) -> Iterator[Reply]:
    """Nobody takes turns with it."""
    request = body("/completion", " ".join([KNIGHT] * 30), -1, n_keep=-1, **FIRST)
    with Reply(endless.port, "/completion", request) as reply:
        reply.wait_for("data:")
        yield reply


def test_a_prompt_that_finds_no_room_opens_its_stream_with_the_notice(
    endless: Stack, neighbour: Reply
) -> None:
    with Reply(endless.port, "/completion", body("/completion", LONG, 8)) as reply:
        assert next(iter(reply)) == ": preempted"
        assert any(slot["is_preempted"] for slot in slots(endless))
        neighbour.leave()
        reply.read()
        assert reply.lines[0] == ": preempted"
        assert set(reply.lines[1 : reply.lines.index(": resumed")]) <= {": preempt-keepalive"}
        assert reply.objects[-1]["tokens_predicted"] == 8


def test_a_parked_stream_is_kept_alive(endless: Stack, neighbour: Reply) -> None:
    with Reply(endless.port, "/v1/chat/completions", body("chat", LONG, 2)) as reply:
        reply.wait_for(": preempted")
        for _ in range(2):
            reply.wait_for(": preempt-keepalive")


def test_a_parked_choice_keeps_the_stream_alive(endless: Stack, neighbour: Reply) -> None:
    with Reply(endless.port, "/completion", body("/completion", [LONG, LONG], 2)) as reply:
        reply.wait_for(": preempted 0")
        reply.wait_for(": preempt-keepalive")


def test_a_queued_stream_is_kept_alive(endless: Stack, neighbour: Reply) -> None:
    with (
        Reply(endless.port, "/completion", body("/completion", LONG, 2)) as head,
        Reply(endless.port, "/completion", body("/completion", FOX, 2)) as queued,
    ):
        head.wait_for(": preempted")
        assert next(iter(queued)) == ": queued"


def test_a_client_that_leaves_frees_its_slot_in_every_state(endless: Stack) -> None:
    with (
        Reply(
            endless.port, "/completion", body("/completion", " ".join([KNIGHT] * 30), -1, **FIRST)
        ) as decoding,
        Reply(endless.port, "/completion", body("/completion", LONG, 200)) as parked,
        Reply(endless.port, "/completion", body("/completion", FOX, 200)) as queued,
    ):
        decoding.wait_for("data:")
        parked.wait_for(": preempted")
        queued.wait_for(": queued")
    wait_until_idle(endless)
    reply = Reply(endless.port, "/completion", body("/completion", KNIGHT, 4)).read()
    assert reply.objects[-1]["tokens_predicted"] == 4
