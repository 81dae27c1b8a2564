from __future__ import annotations

from inference.worker.siblings import Siblings


def test_a_job_is_over_with_the_last_of_its_generations() -> None:
    siblings = Siblings()
    siblings.add("a", ["a", "b", "c"])
    assert siblings.end("a") is None
    assert siblings.end("c") is None
    assert siblings.end("b") == "a"
    assert siblings.of("a") == ()


def test_the_jobs_id_stands_for_all_that_still_run_and_another_for_itself() -> None:
    siblings = Siblings()
    siblings.add("a", ["a", "b", "c"])
    siblings.end("a")
    assert sorted(siblings.of("a")) == ["b", "c"]
    assert siblings.of("b") == ("b",)
    siblings.end("b")
    assert siblings.of("b") == ()


def test_what_ends_twice_or_was_never_here_ends_no_job() -> None:
    siblings = Siblings()
    siblings.add("a", ["a"])
    assert siblings.end("a") == "a"
    assert siblings.end("a") is None
    assert siblings.end("x") is None
