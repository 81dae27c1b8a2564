"""What a caller may have at once, and what the server takes: each bound has its answer, and loses nothing."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from inference.broker.connect import sync_client
from inference.broker.keys import IN_FLIGHT, JOBS
from inference.messages import Failed, Job
from inference.models import ApiKey, Generation, UserLimits
from tests.broker.play import END, picture, told

from .play import Client, fetch, working

PROMPT = {"prompt": "x", "stream": True}
BODIES: dict[str, dict[str, Any]] = {
    "/completion": PROMPT,
    "/v1/completions": PROMPT,
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}], "stream": True},
}


async def new_key(owner: User | None = None, **limits: Any) -> dict[str, str]:
    _, plain = await sync_to_async(ApiKey.objects.create_key)("laptop", owner, **limits)
    return {"Authorization": f"Bearer {plain}"}


def code(client: Client) -> Any:
    return client.json["error"]["code"]


@pytest.mark.parametrize("path", BODIES)
async def test_a_key_that_has_as_many_as_it_may_is_told_to_wait(path):
    key = await new_key(max_concurrent=1)
    async with working() as worker:
        runs = Client("POST", path, BODIES[path], **key)
        job = await worker.takes()
        refused = await fetch("POST", path, BODIES[path], **key)
        await worker.says(job, *told("once"))
        await runs.ends()
        assert (refused.status, refused.headers["retry-after"]) == (429, "2")
        assert refused.json["error"]["type"] == "rate_limit_error"
        assert code(refused) == (429 if path == "/completion" else "rate_limit_exceeded")
        assert "may have 1 generation at once and has 1" in refused.json["error"]["message"]
        # Who has read the end of one finds room for the next.
        again = Client("POST", path, BODIES[path], **key)
        await worker.says(await worker.takes(), *told("again"))
        await again.ends()
    assert again.status == 200
    assert not sync_client().exists(IN_FLIGHT)


async def test_the_keys_of_one_owner_share_his_limit(transactional_db):
    ada = await sync_to_async(User.objects.create_user)("ada")
    await sync_to_async(UserLimits.objects.create)(user=ada, max_concurrent=1)
    one, other, stranger = await new_key(ada), await new_key(ada), await new_key()
    async with working() as worker:
        runs = Client("POST", "/completion", PROMPT, **one)
        job = await worker.takes()
        refused = await fetch("POST", "/completion", PROMPT, **other)
        let_in = Client("POST", "/completion", PROMPT, **stranger)
        await worker.says(await worker.takes(), END)
        await let_in.ends()
        await worker.says(job, END)
        await runs.ends()
    assert refused.status == 429
    assert "The owner of this API key may have 1" in refused.json["error"]["message"]
    assert let_in.status == 200


@pytest.mark.parametrize("keys", [("secret", "other"), ()])
async def test_the_keys_of_the_flags_and_the_addresses_without_one_have_the_servers_limit(keys, options):
    options(api_keys=keys, max_per_key=1, max_per_address=1)
    headers = {"Authorization": "Bearer secret"} if keys else {}
    async with working() as worker:
        runs = Client("POST", "/completion", PROMPT, **headers)
        job = await worker.takes()
        refused = await fetch("POST", "/completion", PROMPT, **headers)
        await worker.says(job, END)
        await runs.ends()
    assert refused.status == 429
    assert refused.json["error"]["message"].startswith(
        "This API key" if keys else "Without a key, your address"
    )


async def test_each_choice_counts_and_all_are_given_back_together():
    key = await new_key(max_concurrent=3)
    async with working() as worker:
        runs = Client("POST", "/completion", {**PROMPT, "n": 2}, **key)
        job = await worker.takes()
        refused = await fetch("POST", "/completion", {**PROMPT, "n": 2}, **key)
        assert refused.status == 429
        await worker.says_of(job, 0, *told("a"))
        assert (await fetch("POST", "/completion", {**PROMPT, "n": 2}, **key)).status == 429
        await worker.says_of(job, 1, *told("b"))
        await runs.ends()
    assert not sync_client().exists(IN_FLIGHT)


async def test_more_than_can_ever_be_is_a_mistake_of_the_request():
    key = await new_key(max_concurrent=3)
    async with working():
        client = await fetch("POST", "/v1/completions", {**PROMPT, "n": 4}, **key)
    assert (client.status, client.json["error"]["param"]) == (400, "n")
    assert "retry-after" not in client.headers


async def test_a_refused_request_and_one_whose_client_leaves_give_their_room_back():
    key = await new_key(max_concurrent=1)
    async with working() as worker:
        refused = Client("POST", "/completion", PROMPT, **key)
        await worker.says(await worker.takes(), Failed(400, "invalid_request_error", "too long"))
        await refused.ends()
        leaves = Client("POST", "/completion", PROMPT, **key)
        job = await worker.takes()
        await leaves.leaves()
        await worker.is_told_to_cancel(job)
        await worker.says(job, END)
        last = Client("POST", "/completion", PROMPT, **key)
        await worker.says(await worker.takes(), END)
        await last.ends()
    assert (refused.status, last.status) == (400, 200)


@pytest.mark.parametrize("path", [*BODIES, "/tokenize"])
async def test_a_full_queue_is_a_503(path, options):
    options(max_queue=0)  # nobody waits, so one runs in each slot
    async with working() as worker:
        runs = Client("POST", "/completion", PROMPT)
        job = await worker.takes()
        refused = await fetch("POST", path, BODIES.get(path, {"content": "x"}))
        await worker.says(job, END)
        await runs.ends()
    assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    assert refused.json["error"]["type"] == "unavailable_error"
    assert "queue of this server is full" in refused.json["error"]["message"]


async def test_the_queue_has_room_for_as_many_as_it_says_beside_the_slots_of_all_workers(options):
    options(max_queue=1)
    slot = picture()["slots"][0]
    async with working(slots=[slot, slot]) as worker:
        clients, taken = [], []
        for _ in range(3):
            clients.append(Client("POST", "/completion", PROMPT))
            taken.append(await worker.takes())
        refused = await fetch("POST", "/completion", PROMPT)
        for job in taken:
            await worker.says(job, END)
        for client in clients:
            await client.ends()
    assert refused.status == 503


async def test_what_is_refused_leaves_nothing_behind(options):
    options(max_queue=0)
    async with working(slots=[]):
        assert (await fetch("POST", "/completion", PROMPT)).status == 400  # there is no room at all
    assert not sync_client().exists(JOBS, IN_FLIGHT)
    assert not await Generation.objects.aexists()


@pytest.mark.parametrize(
    ("server", "of_key", "asked", "got"),
    [
        (-1, None, -1, 1000),
        (-1, None, 50, 50),
        (20, None, -1, 20),
        (20, None, 50, 20),
        (20, None, 10, 10),
        (-1, 5, -1, 5),
        (20, 5, 50, 5),
        (20, 50, 50, 20),
    ],
)
async def test_an_answer_is_as_long_as_the_least_of_what_is_asked_for_and_allowed(
    server, of_key, asked, got, options
):
    options(max_output=server, max_log=1000)
    key = await new_key(max_output=of_key) if of_key else {}
    async with working() as worker:
        for path, body in BODIES.items():
            client = Client("POST", path, {**body, "max_tokens": asked}, **key)
            job: Job = await worker.takes()
            await worker.says(job, END)
            await client.ends()
            assert job.body["max_tokens"] == got


async def test_the_number_of_choices_is_the_operators(options):
    options(max_choices=2)
    async with working():
        for fields in ({"n": 3}, {"prompt": ["a", "b", "c"]}, {"prompt": ["a", "b"], "n": 2}):
            client = await fetch("POST", "/v1/completions", {**PROMPT, **fields})
            assert client.status == 400
            assert "2" in client.json["error"]["message"]


@pytest.mark.parametrize("path", ["/completion", "/v1/models"])
async def test_a_503_of_any_kind_says_when_to_try_again(path, redis_server):
    redis_server.kill()
    client = await fetch("GET" if path == "/v1/models" else "POST", path, PROMPT)
    assert (client.status, client.headers["retry-after"]) == (503, "5")
