"""The description against what it describes: every path, and every bound by which a body is read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from inference.routing import http_urlpatterns
from inference.wire import openapi
from inference.wire.api import Defaults
from inference.wire.errors import RequestError
from inference.wire.llamacpp import COMPLETION
from inference.wire.openai import CHAT, COMPLETIONS

DOCUMENT = openapi.document("1")
SCHEMAS = DOCUMENT["components"]["schemas"]
SOURCES: dict[str, Any] = {"messages": [{"role": "user", "content": "a"}], "prompt": "a"}
REQUESTS: list[tuple[Any, str]] = [
    (CHAT, "ChatRequest"),
    (COMPLETIONS, "TextCompletionRequest"),
    (COMPLETION, "CompletionRequest"),
]
BOUNDS = [
    (api, name, field)
    for api, request in REQUESTS
    for name, field in SCHEMAS[request]["properties"].items()
    if {"minimum", "maximum", "enum"} & field.keys()
]


def is_taken(api: Any, **fields: Any) -> bool:
    try:
        api.parse(SOURCES | fields, Defaults())
    except RequestError:
        return False
    return True


def test_every_route_is_described() -> None:
    routes = {re.sub(r"<\w+:(\w+)>", r"{\1}", f"/{pattern.pattern}") for pattern in http_urlpatterns}
    routes = {route for route in routes if not route.startswith("/^")}  # whatever else is asked for
    assert routes == set(DOCUMENT["paths"])


@pytest.mark.parametrize(
    ("api", "name", "field"), BOUNDS, ids=[f"{api.name}-{name}" for api, name, _ in BOUNDS]
)
def test_a_bound_is_the_one_that_is_kept(api: Any, name: str, field: dict[str, Any]) -> None:
    if "minimum" in field:
        step = 1 if "integer" in field["type"] else 0.001
        assert is_taken(api, **{name: field["minimum"]})
        assert not is_taken(api, **{name: field["minimum"] - step})
    if "maximum" in field:
        assert is_taken(api, **{name: field["maximum"]})
        assert not is_taken(api, **{name: field["maximum"] + 1})
    for value in field.get("enum", []):
        assert is_taken(api, **{name: value})
    if "enum" in field:
        assert not is_taken(api, **{name: "nothing of the kind"})


def test_every_reference_leads_somewhere() -> None:
    references = set(re.findall(r"#/components/schemas/(\w+)", repr(DOCUMENT)))
    assert references <= SCHEMAS.keys()
