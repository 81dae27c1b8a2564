from __future__ import annotations

import pytest

from inference.messages import GenerationRequest, priority_name
from inference.wire.api import Defaults
from inference.wire.errors import RequestError
from tests.wire.examples import APIS, parse, source

every_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)


@every_api
@pytest.mark.parametrize(
    ("said", "meant"), [("high", -1), ("normal", 0), ("low", 1), (7, 7), (-100, -100), (100, 100), (0, 0)]
)
def test_a_priority_is_a_word_or_an_integer_of_which_the_lower_goes_first(api, said, meant):
    assert parse(api, priority=said).priority == meant


@every_api
def test_a_request_that_does_not_say_has_the_default(api):
    assert api.parse(source(api), Defaults(priority=1)).priority == 1
    assert api.parse(source(api) | {"priority": None}, Defaults(priority=1)).priority == 1


@every_api
@pytest.mark.parametrize("said", ["urgent", "High", "", "-1", 101, -101, 1.0, True, [], {}])
def test_anything_else_is_refused(api, said):
    with pytest.raises(RequestError, match="from -100") as caught:
        parse(api, priority=said)
    assert (caught.value.status, caught.value.param) == (400, "priority")


def test_a_job_carries_the_priority():
    request = GenerationRequest(prompt="a", priority=-1)
    assert GenerationRequest.from_dict(request.to_dict()) == request


def test_a_priority_without_a_word_is_told_by_its_number():
    assert [priority_name(n) for n in (-1, 0, 1, -5)] == ["high", "normal", "low", "-5"]
