"""Clients that come back: the ids they have, and answers that were cancelled when they left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from inference.messages import Finished, Job
from tests.broker.play import END, told

from .play import Client, Worker


def ids(client: Client) -> list[str]:
    return [line[4:] for line in client.body.decode().splitlines() if line.startswith("id: ")]


def cancelled(n: int) -> Finished:
    return replace(END, stop_type="cancelled", text="", completion_tokens=n)


async def cut_off(worker: Worker, path: str, body: dict[str, Any], *texts: str) -> tuple[Client, Job]:
    """A client that left after these texts, and its job, which is cancelled."""
    client = Client("POST", path, body)
    job = await worker.takes()
    await worker.says(job, *told(*texts)[:-1])
    await client.hears(f'"{texts[-1]}"')
    await client.leaves()
    await worker.says(job, cancelled(len(texts)))
    return client, job
