"""The API does what its description says, whatever is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from inference.options import VERSION
from inference.wire import openapi
from tests.e2e.api import Reply
from tests.e2e.stack import Stack

from .leaks import nothing_is_left

pytestmark = pytest.mark.model

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
DOCUMENT = openapi.document(VERSION)
load_all_checks()


def described(phase: str, most: int, *paths: str) -> Any:
    """The description as a source of cases: the same ones each time."""
    found: Any = schemathesis.openapi.from_dict(DOCUMENT)
    found.config.generation.deterministic = True
    found.config.generation.max_examples = most
    found.config.phases.update(phases=[phase])
    return found.include(path=list(paths)) if paths else found


everything = described("fuzzing", 10)
# Each bound of each field, and just beyond it. What the three endpoints take they read by the same code.
first_paths = [o.paths[0] for o in openapi.OPERATIONS if o.paths[0] not in ("/v1/completions", "/completion")]
bounds = described("coverage", 1, *first_paths)


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left(stack: Stack) -> Iterator[None]:
    with nothing_is_left(stack):
        yield


def fill(body: dict[str, Any]) -> None:
    """A text without any token, which the model has to refuse, would hide what else a body holds."""
    if body.get("prompt") == "":
        body["prompt"] = "a"
    for message in body.get("messages", []):
        message["content"] = message.get("content") or "a"


def check(case: Any, stack: Stack) -> None:
    if isinstance(case.body, dict) and case.meta.generation.mode.is_positive:
        fill(case.body)
    answer = case.call(base_url=stack.url, timeout=60)
    case.validate_response(answer, checks=CHECKS, transport_kwargs={"timeout": 60})


@everything.parametrize()
def test_every_answer_is_one_of_the_description(case, stack):
    check(case, stack)


@bounds.parametrize()
def test_every_bound_is_the_one_of_the_description(case, stack):
    check(case, stack)


def test_the_server_describes_itself(stack: Stack) -> None:
    assert Reply(stack.port, "/openapi.json").json() == DOCUMENT
