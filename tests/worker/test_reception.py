"""A worker considers one job after the other, and nobody waits for one with much text."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from inference.engine.llama import Model
from inference.messages import Answer, Job
from inference.worker.intake import Intake
from inference.worker.reception import MUCH_TEXT, Reception


class Held(Intake):
    """Tokenises much text only when it is let."""

    def __init__(self, model: Model) -> None:
        super().__init__(model, template=None, n_ctx_seq=64)  # type: ignore[arg-type]
        self.may_go_on = threading.Event()

    def answer(self, job: Job) -> Answer:
        if len(job.body["content"]) > MUCH_TEXT:
            assert self.may_go_on.wait(60)
        return super().answer(job)


def question(text: str) -> Job:
    return Job("0" * 32, "tokenize", {"content": text}, "")


@pytest.mark.parametrize("much", ["a", "word ", "漢"])
async def test_who_asks_little_does_not_wait_for_who_asks_much(model: Model, much: str) -> None:
    lease: Any = None  # which only a job of a dead worker needs
    intake = Held(model)
    reception = Reception(intake, lease)
    long = question(much * MUCH_TEXT + much)
    assert reception.takes_long(long)
    considered = asyncio.create_task(reception.consider(long))
    for _ in range(3):
        little = question("hello")
        assert not reception.takes_long(little)
        ((event, _),) = await reception.consider(little)
        assert isinstance(event, Answer)
    assert not considered.done()
    intake.may_go_on.set()
    ((event, _),) = await considered
    assert isinstance(event, Answer)
    assert len(event.data["tokens"]) > 1


@pytest.mark.parametrize("body", [{"tokens": [1] * (MUCH_TEXT + 1)}, {"prompts": [["a" * MUCH_TEXT], "b"]}])
def test_tokens_and_parts_count_as_text_does(body: dict[str, Any]) -> None:
    anything: Any = None
    assert Reception(anything, anything).takes_long(Job("0" * 32, "generate", body, ""))
