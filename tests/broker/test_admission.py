"""What is in flight: one set of books for all web processes, right at any number of them, without a leak."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from inference.broker import admission, connect, jobs
from inference.broker.admission import Account, Full
from inference.broker.connect import sync_client
from inference.broker.keys import ADMITTED, IN_FLIGHT, PERMITS
from inference.broker.publisher import Publisher

from .play import END, job, new_id, numbered

ADA = Account("user:1", 3)
KEY = Account("key:7", 2)
ALL = Account(admission.EVERYBODY, 100)


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    sync_client().flushall()


def books() -> dict[str, int]:
    found: Any = sync_client().hgetall(IN_FLIGHT)
    return {name.decode(): int(n) for name, n in found.items()}


def seconds_left() -> float:
    """Until the one permit there is lapses."""
    client: Any = sync_client()
    [(_, at)] = client.zrange(ADMITTED, 0, -1, withscores=True)
    return float(at - client.time()[0])


def are_empty() -> bool:
    return not sync_client().exists(ADMITTED, IN_FLIGHT, PERMITS)


async def over(*ids: str) -> None:
    await Publisher("w1").publish([(id, 1, END) for id in ids], ids)


async def test_room_is_taken_in_all_accounts_and_given_back_with_the_last_event():
    id = new_id()
    await admission.admit(id, 2, (KEY, ADA, ALL))
    assert books() == {"key:7": 2, "user:1": 2, "all": 2}
    await over(id)
    assert are_empty()


async def test_a_job_of_several_generations_gives_all_its_room_back_with_its_last_one():
    id = new_id()
    await admission.admit(id, 2, (ADA,))
    await Publisher("w1").publish(numbered(id, [END]))
    assert books() == {"user:1": 2}
    await over(id)
    assert are_empty()


@pytest.mark.parametrize("full", [(KEY, ADA), (ADA, KEY)])
async def test_one_account_without_room_takes_none_in_the_others(full):
    id = new_id()
    await admission.admit(id, 2, full)
    with pytest.raises(Full) as caught:
        await admission.admit(new_id(), 1, full)
    assert (caught.value.account, caught.value.used) == (KEY, 2)
    assert books() == {"key:7": 2, "user:1": 2}
    await over(id)
    assert are_empty()


async def test_minus_one_is_no_limit():
    for _ in range(5):
        await admission.admit(new_id(), 1, (Account("user:1", -1),))
    assert books() == {"user:1": 5}


async def test_a_job_is_counted_once_however_often_it_is_admitted_or_over():
    id = new_id()
    for _ in range(2):
        await admission.admit(id, 1, (ADA,))
    assert books() == {"user:1": 1}
    other = new_id()
    await admission.admit(other, 1, (ADA,))
    for _ in range(2):
        await over(id)
    assert books() == {"user:1": 1}
    await over(other, new_id())
    assert are_empty()


async def test_what_is_given_back_can_be_taken_again():
    for _ in range(10):
        id = new_id()
        await admission.admit(id, 3, (ADA,))
        await over(id)


async def test_many_at_once_get_no_more_than_there_is():
    answers = await asyncio.gather(
        *(admission.admit(new_id(), 1, (ADA,)) for _ in range(50)), return_exceptions=True
    )
    assert sum(answer is None for answer in answers) == 3
    assert all(answer is None or isinstance(answer, Full) for answer in answers)


def test_so_do_many_processes():
    """Each thread is as another web process: a connection of its own."""
    granted: list[int] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        for _ in range(10):
            try:
                admission.admit_sync(new_id(), 1, (Account("user:1", 20),))
                granted.append(1)
            except Full:
                pass

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == books()["user:1"] == 20


def lapse(id: str) -> None:
    """As if the time of its permit had come."""
    sync_client().zadd(ADMITTED, {id: 1})


async def test_what_was_admitted_and_never_submitted_lapses():
    """Its web process was killed in between."""
    id = new_id()
    await admission.admit(id, 3, (ADA,))
    assert 0 < seconds_left() <= admission.PENDING_S
    lapse(id)
    await admission.admit(new_id(), 3, (ADA,))
    assert books() == {"user:1": 3}


async def test_what_was_submitted_does_not():
    submitted = job()
    await admission.admit(submitted.id, 3, (ADA,))
    await jobs.submit(submitted)
    assert seconds_left() > admission.PENDING_S
    with pytest.raises(Full):
        await admission.admit(new_id(), 1, (ADA,))


async def test_a_job_that_needs_no_permit_has_none():
    await jobs.submit(job())
    assert are_empty()


async def test_what_will_not_run_gives_its_room_back():
    id = new_id()
    await admission.admit(id, 1, (ADA,))
    admission.release_sync(id)
    assert are_empty()


async def test_without_redis_it_is_said(redis_server):
    redis_server.kill()
    with pytest.raises(connect.AWAY):
        await admission.admit(new_id(), 1, (ADA,))
    with pytest.raises(connect.AWAY):
        admission.admit_sync(new_id(), 1, (ADA,))
