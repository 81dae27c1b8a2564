from __future__ import annotations

from . import plan
from .sse import Comment, Event, Parser


def test_a_seed_makes_one_plan() -> None:
    assert plan.make(7, 300) == plan.make(7, 300)
    assert plan.make(7, 300) != plan.make(8, 300)


def test_the_faults_that_are_wanted_do_not_change_the_requests() -> None:
    some = plan.make(7, 300, ["web", "redis"])
    assert some.requests == plan.make(7, 300).requests
    assert {fault.kind for fault in some.faults} == {"web", "redis"}


def test_a_long_plan_has_everything_in_it() -> None:
    made = plan.make(1, 300)
    assert {fault.kind for fault in made.faults} == set(plan.KINDS)
    assert {request.question.endpoint for request in made.requests} == {
        "/completion",
        "/v1/completions",
        "/v1/chat/completions",
        "page",
    }
    assert {request.manner for request in made.requests} == {
        "stays",
        "slow",
        "leaves",
        "returns",
        "reloads",
        "stops",
    }
    assert {request.question.n for request in made.requests} == {1, 2}


def test_an_event_that_is_cut_off_never_was() -> None:
    parser = Parser()
    assert parser.feed(b"id: a.1\ndata: one\n\n: resumed\n\nid: a.2\nda") == [
        Event("", "one"),
        Comment("resumed"),
    ]
    assert parser.last_id == "a.1"
    parser.begin()
    assert parser.feed(b"id: a.2\nevent: token\ndata: two\n\n") == [Event("token", "two")]
    assert parser.last_id == "a.2"
