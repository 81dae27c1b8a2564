from __future__ import annotations

import pytest

from inference import http
from inference.messages import Answer, Failed
from tests.broker.play import picture, show

from .play import Client, fetch, working

KEY = {"Authorization": "Bearer secret"}


@pytest.mark.parametrize("path", ["/health", "/v1/health"])
async def test_health_is_ok_once_a_worker_is_ready(path, options):
    options(api_keys=("secret",))
    client = await fetch("GET", path)
    assert (client.status, client.json["error"]["type"]) == (503, "unavailable_error")
    await show(state="loading")
    client = await fetch("GET", path)
    assert client.json == {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    await show()
    client = await fetch("GET", path)
    assert (client.status, client.json) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/v1/models", "/models"])
async def test_the_models_can_be_seen_without_a_key(path, options):
    options(api_keys=("secret",))
    await show()
    client = await fetch("GET", path)
    assert [model["id"] for model in client.json["data"]] == ["tiny"]


@pytest.mark.parametrize("path", ["/v1/models/", "/models/"])
async def test_a_model_can_be_asked_for_by_its_name_whatever_it_holds(path, options):
    options(api_keys=("secret",))
    assert (await fetch("GET", path + "tiny")).status == 503  # none is ready
    await show(model=picture()["model"] | {"alias": "some/tiny"})
    client = await fetch("GET", path + "some/tiny")
    assert (client.status, client.json["object"], client.json["id"]) == (200, "model", "some/tiny")
    client = await fetch("GET", path + "tiny")
    assert client.status == 404
    assert client.json["error"]["code"] == "model_not_found"
    assert "some/tiny" in client.json["error"]["message"]


@pytest.mark.parametrize("path", ["/slots", "/props", "/metrics"])
async def test_the_rest_needs_the_key(path, options):
    options(api_keys=("secret",), metrics=True)
    await show()
    assert (await fetch("GET", path)).status == 401
    assert (await fetch("GET", path, **KEY)).status == 200


async def test_slots_tell_their_state():
    await show()
    client = await fetch("GET", "/slots")
    assert [slot["is_processing"] for slot in client.json] == [False]


@pytest.mark.parametrize("path", ["/slots", "/metrics"])
async def test_an_endpoint_that_is_turned_off_says_so(path, options):
    options(slots=False, metrics=False)
    client = await fetch("GET", path)
    assert (client.status, client.json["error"]["type"]) == (501, "not_supported_error")


async def test_metrics_are_prometheus_text(options):
    options(metrics=True)
    await show()
    client = await fetch("GET", "/metrics")
    assert client.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b"llamacpp:kv_cache_usage_ratio" in client.body


@pytest.mark.parametrize(
    ("path", "body", "question", "answer"),
    [
        ("/tokenize", {"content": "hi"}, "hi", {"tokens": [1, 2]}),
        ("/detokenize", {"tokens": [1, 2]}, [1, 2], {"content": "hi"}),
        ("/apply-template", {"messages": [{"role": "user", "content": "hi"}]}, None, {"prompt": "<hi>"}),
    ],
)
async def test_a_question_is_answered_by_the_worker(path, body, question, answer):
    async with working() as worker:
        client = Client("POST", path, body)
        job = await worker.takes()
        assert question is None or question in job.body.values()
        await worker.says(job, Answer(answer))
        await client.ends()
    assert (client.status, client.json) == (200, answer)


async def test_a_question_that_the_worker_refuses_is_an_error():
    async with working() as worker:
        client = Client("POST", "/detokenize", {"tokens": [99]})
        await worker.says(await worker.takes(), Failed(400, "invalid_request_error", "no such token"))
        await client.ends()
    assert (client.status, client.json["error"]["message"]) == (400, "no such token")


async def test_a_malformed_question_is_a_400():
    assert (await fetch("POST", "/tokenize", {"content": 1})).status == 400


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("GET", "/completion", "POST, OPTIONS"), ("POST", "/health", "GET, OPTIONS")],
)
async def test_another_method_is_a_405_that_names_the_right_one(method, path, allow):
    client = await fetch(method, path)
    assert (client.status, client.headers["allow"]) == (405, allow)


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/", "/v1/nothing", "/slots/1/2", "/nothing", "/models/", "/props/x"]
)
async def test_an_unknown_path_is_a_404_in_json(path):
    for method in ("GET", "POST", "DELETE"):
        client = await fetch(method, path, {}, Host="localhost", Accept="*/*")
        assert (client.status, client.json["error"]["type"]) == (404, "not_found_error")
        assert f"There is no {path} here" in client.json["error"]["message"]


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/v1/embeddings", "embeddings"),
        ("/embedding", "embeddings"),
        ("/infill", "infilling"),
        ("/v1/responses/x", "OpenAI's Responses API"),
        ("/api/tags", "Ollama's API"),
    ],
)
async def test_what_other_servers_have_is_a_404_that_names_it(path, what):
    client = await fetch("POST", path, {}, Host="localhost")
    assert client.status == 404
    assert f"does not offer {what}." in client.json["error"]["message"]


async def test_a_client_of_anthropics_reads_an_error_of_its_own():
    client = await fetch("POST", "/v1/messages/count_tokens", {})
    assert (client.status, client.json["type"]) == (404, "error")
    assert client.json["error"].keys() == {"type", "message"}


async def test_a_body_that_is_too_large_is_a_413(monkeypatch):
    monkeypatch.setattr(http, "MAX_BODY", 2**20)  # as --max-body 1 does
    client = await fetch("POST", "/completion", b"x" * (2**20 + 1))
    assert (client.status, client.json["error"]["code"]) == (413, 413)
    assert "1 MiB" in client.json["error"]["message"]


async def test_head_has_the_headers_alone():
    await show()
    client = await fetch("HEAD", "/health")
    assert (client.status, client.body, client.headers["content-length"]) == (200, b"", "15")


async def test_pages_of_other_origins_may_call():
    headers = {"Origin": "http://app.test", "Access_Control_Request_Headers": "authorization"}
    client = await fetch("OPTIONS", "/v1/chat/completions", **headers)
    assert client.status == 204
    assert client.headers["access-control-allow-origin"] == "http://app.test"
    assert client.headers["access-control-allow-headers"] == "authorization"
    client = await fetch("GET", "/v1/models", Origin="http://app.test")
    assert client.headers["access-control-allow-origin"] == "http://app.test"


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/slots", "/completion"])
async def test_without_redis_the_answer_is_503(path, redis_server):
    redis_server.kill()
    body = {"prompt": "hi"} if path == "/completion" else None
    client = await fetch("POST" if body else "GET", path, body)
    assert client.status == 503
