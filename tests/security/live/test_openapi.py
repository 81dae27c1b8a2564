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
schema: Any = schemathesis.openapi.from_dict(DOCUMENT).include(path=[o.paths[0] for o in openapi.OPERATIONS])
schema.config.generation.deterministic = True
schema.config.generation.max_examples = 15


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left(stack: Stack) -> Iterator[None]:
    with nothing_is_left(stack):
        yield


@schema.parametrize()
def test_every_answer_is_one_of_the_description(case: Any, stack: Stack) -> None:
    answer = case.call(base_url=stack.url, timeout=60)
    case.validate_response(answer, checks=CHECKS, transport_kwargs={"timeout": 60})


def test_the_server_describes_itself(stack: Stack) -> None:
    assert Reply(stack.port, "/openapi.json").json() == DOCUMENT
