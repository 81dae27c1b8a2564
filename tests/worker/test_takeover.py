"""What is done with each generation of a job whose worker is gone, from what its log holds."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, cast

import pytest

from inference.broker.connect import async_client
from inference.broker.job_reader import Claimed
from inference.broker.keys import event_log
from inference.broker.publisher import Publisher
from inference.engine.sequence import Sequence
from inference.messages import (
    Accepted,
    Event,
    Failed,
    Finished,
    GenerationRequest,
    Job,
    Started,
    Timings,
    Token,
)
from inference.worker import takeover
from inference.worker.reception import Taken
from inference.worker.takeover import CULPRIT, LOST, Left

ACCEPTED, REFUSED = Accepted(3, 77, 9), Failed(400, "invalid_request_error", "no")
BEGUN: list[Event] = [ACCEPTED, Started(0), Token(5, "a")]
N_VOCAB = 10
END = Finished("eos", "", "", 3, 1, False, 0, Timings(), 0, 0.0, 0.1)


def job(n: int = 1) -> Job:
    prompts = tuple((i,) for i in range(n)) if n > 1 else ()
    request = GenerationRequest(prompt=None if prompts else "x", prompts=prompts)
    return Job(uuid.uuid4().hex, "generate", request.to_dict(), "")


async def write(id: str, events: list[Event]) -> None:
    await Publisher("w").publish([(id, number, event) for number, event in enumerate(events, 1)])


class Intake:
    """Accepts everything, and remembers with what seeds."""

    def __init__(self, answer: Event = ACCEPTED) -> None:
        self.seeds: list[Mapping[str, int]] = []
        self._answer = answer

    async def consider(self, job: Job, seeds: Mapping[str, int]) -> Taken:
        self.seeds.append(seeds)
        if self._answer is not ACCEPTED:
            return [(self._answer, None)]
        return [(ACCEPTED, cast(Sequence, id)) for id in job.generations()]


async def look(job: Job, culprit: str = "", intake: Any = None) -> Left:
    return await takeover.look(Claimed(job, culprit), (intake or Intake()).consider, N_VOCAB)


def lives(left: Left) -> dict[str, list[int]]:
    """The tokens of each that goes on."""
    return {cast(str, seq): past.tokens for seq, past in left.lives}


async def test_one_that_was_never_accepted_is_taken_as_any_other() -> None:
    fresh, intake = job(2), Intake()
    left = await look(fresh, intake=intake)
    first, second = fresh.generations()
    assert left.told == [(first, ACCEPTED), (second, ACCEPTED)]
    assert left.numbers == {first: 0, second: 0}
    assert lives(left) == {first: [], second: []}
    assert intake.seeds == [{}]


async def test_one_that_is_refused_only_now_is_told_once() -> None:
    fresh = job(2)
    left = await look(fresh, intake=Intake(REFUSED))
    assert (left.told, left.lives) == ([(fresh.id, REFUSED)], [])


async def test_each_generation_goes_on_from_its_own_log_with_its_own_seed() -> None:
    wanted, intake = job(4), Intake()
    over, begun, accepted, unsaid = wanted.generations()
    await write(over, [*BEGUN, END])
    await write(begun, BEGUN)
    await write(accepted, [ACCEPTED])
    left = await look(wanted, intake=intake)
    assert left.numbers == {begun: 3, accepted: 1, unsaid: 0}
    assert left.told == [(unsaid, ACCEPTED)]
    assert lives(left) == {begun: [5], accepted: [], unsaid: []}
    assert intake.seeds == [{begun: 77, accepted: 77}]


@pytest.mark.parametrize("told", [[REFUSED], [*BEGUN, END]], ids=["refused", "finished"])
async def test_of_a_job_that_is_over_nothing_is_left(told: list[Event]) -> None:
    done = job(2 if told == [REFUSED] else 1)
    await write(done.id, told)
    left = await look(done)
    assert (left.histories, left.told, left.lives) == ({}, [], [])


async def test_the_one_that_ended_its_worker_again_fails_and_its_siblings_go_on() -> None:
    wanted = job(2)
    first, second = wanted.generations()
    await write(first, BEGUN)
    await write(second, BEGUN)
    left = await look(wanted, culprit=second)
    assert left.told == [(second, CULPRIT)]
    assert lives(left) == {first: [5]}


async def test_so_does_one_that_ended_it_before_it_was_accepted_and_it_is_not_read_again() -> None:
    wanted, intake = job(2), Intake()
    left = await look(wanted, culprit=wanted.id, intake=intake)
    assert (left.told, left.lives, intake.seeds) == ([(wanted.id, CULPRIT)], [], [])


async def test_where_redis_has_lost_the_beginning_it_fails_and_says_so() -> None:
    wanted = job()
    await write(wanted.id, BEGUN)
    await Publisher("w").publish([(wanted.id, 4, Token(6, "b"))])
    await async_client().xdel(event_log(wanted.id), "3-0")
    left = await look(wanted)
    assert (left.told, left.lives) == ([(wanted.id, LOST)], [])


@pytest.mark.parametrize("raw", [b"\xff", b"[]", b'[["token", "x", 1]]', b'[["token", 10, "x"]]'])
async def test_where_the_log_cannot_be_read_that_one_fails_and_its_siblings_go_on(raw: bytes) -> None:
    wanted = job(2)
    first, second = wanted.generations()
    for id in (first, second):
        await write(id, BEGUN)
    await async_client().xadd(event_log(first), {"e": raw, "t": 1}, id="4-0")
    left = await look(wanted)
    assert (left.told, left.numbers) == ([(first, LOST)], {first: 4, second: 3})
    assert lives(left) == {second: [5]}


async def test_so_it_is_where_something_is_missing_in_the_middle() -> None:
    wanted = job()
    for number, event in enumerate(BEGUN, 1):
        await Publisher("w").publish([(wanted.id, number, event)])
    await async_client().xdel(event_log(wanted.id), "2-0")
    assert (await look(wanted)).told == [(wanted.id, LOST)]


async def test_so_it_is_where_there_is_no_log_but_something_else() -> None:
    wanted = job()
    await async_client().set(event_log(wanted.id), "a log")
    assert (await look(wanted)).told == [(wanted.id, LOST)]


async def test_what_this_worker_cannot_run_fails_with_its_reason() -> None:
    wanted = job()
    await write(wanted.id, BEGUN)
    left = await look(wanted, intake=Intake(REFUSED))
    assert left.told == [(wanted.id, REFUSED)]
    assert left.numbers == {wanted.id: 3}
