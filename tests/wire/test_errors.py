from __future__ import annotations

import pytest

from inference.messages import Failed
from inference.wire.errors import RequestError
from inference.wire.llamacpp import COMPLETION
from inference.wire.openai import CHAT, COMPLETIONS

TOO_LONG = Failed(400, "exceed_context_size_error", "Too long.", {"n_prompt_tokens": 900, "n_ctx": 512})
openai = pytest.mark.parametrize("api", [CHAT, COMPLETIONS], ids=lambda api: api.name)


@pytest.mark.parametrize(
    ("status", "type"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "server_error"),
        (501, "not_supported_error"),
        (503, "unavailable_error"),
        (504, "server_error"),
    ],
)
def test_a_status_has_its_usual_type(status, type):
    assert RequestError(status, "", "m").type == type


def test_a_type_that_is_given_stays():
    assert RequestError(400, "special", "m").type == "special"


@openai
def test_openais_error_names_the_field(api):
    error = RequestError(400, "", "Bad.", "top_p")
    assert api.error(error) == {
        "error": {"message": "Bad.", "type": "invalid_request_error", "param": "top_p", "code": None}
    }


@openai
def test_openais_codes(api):
    assert api.error(RequestError(401, "", "No."))["error"]["code"] == "invalid_api_key"
    assert api.error(RequestError(429, "", "Slow."))["error"]["code"] == "rate_limit_exceeded"
    assert api.error(RequestError(503, "", "Later."))["error"]["code"] is None


@openai
def test_a_prompt_too_long_has_openais_code_and_the_counts(api):
    assert api.error(RequestError.from_failed(TOO_LONG)) == {
        "error": {
            "message": "Too long.",
            "type": "invalid_request_error",
            "param": None,
            "code": "context_length_exceeded",
            "n_prompt_tokens": 900,
            "n_ctx": 512,
        }
    }


def test_llama_servers_error_has_the_status_as_its_code():
    assert COMPLETION.error(RequestError.from_failed(TOO_LONG)) == {
        "error": {
            "code": 400,
            "message": "Too long.",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 900,
            "n_ctx": 512,
        }
    }


def test_an_error_reads_as_its_message():
    assert str(RequestError(400, "", "Bad.")) == "Bad."
