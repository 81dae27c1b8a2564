"""Whatever comes over the wire: no 5xx, no hang, and nothing is left of it."""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Iterator

import pytest

from inference.http import MAX_BODY
from tests.e2e.api import Reply, body
from tests.e2e.stack import Stack

from .leaks import nothing_is_left
from .sockets import Answer, parse, post, send

pytestmark = pytest.mark.model

PATHS = [
    "/completion",
    "/v1/completions",
    "/v1/chat/completions",
    "/tokenize",
    "/detokenize",
    "/apply-template",
]
HELLO = [{"role": "user", "content": "hello"}]
DEEP = b"[" * 100_000


def with_field(name: str, raw: bytes) -> bytes:
    """A request for one token that has this field, as it stands."""
    start = json.dumps(
        {"prompt": "a", "messages": HELLO, "content": "a", "tokens": [1], "max_tokens": 1}
    ).encode()
    return start[:-1] + b',"' + name.encode() + b'":' + raw + b"}"


# None of these is a request that can be answered.
BROKEN = {
    "nothing": b"",
    "not JSON": b"prompt=hello",
    "half of it": b'{"prompt": "hel',
    "not UTF-8": b'{"prompt": "\xff\xfe"}',
    "an overlong null": b'{"prompt": "\xc0\x80"}',
    "a surrogate": b'{"prompt": "\\ud800", "content": "\\ud800", "messages": "\\ud800", "tokens": "\\ud800"}',
    "UTF-16": '{"prompt": "a"}'.encode("utf-16"),
    "null bytes": bytes(1000),
    "another type": b"[1, 2, 3]",
    "null": b"null",
    "a number": b"1e400",
    "nested without end": DEEP,
    "nested, in a field": with_field("prompt", DEEP),
    "nested, and closed": with_field("x", b"[" * 50_000 + b"]" * 50_000),
    "no number of JSON": with_field("x", b"NaN"),
    "a number too long": with_field("max_tokens", b"1" * 10_000),
    "a brace too many": with_field("x", b"1") + b"}",
}
# Fields that no generation takes.
FIELDS = {
    "temperature": [b"1e400", b"-1e400", b"-Infinity", b'"hot"', b"[1]", b"true"],
    "max_tokens": [b"-2", b"1.5", b'"many"', b"true"],
    "seed": [b"4294967296", b"-2", b"1e10", b"9" * 4000],
    "n": [b"0", b"129", b"1e2", b"-1", b"9" * 4000],
    "top_k": [b"1e400", b"9" * 4000, b"[]"],
    "stop": [b'""', b"[" + b'"a",' * 16 + b'"a"]', b'"' + b"a" * 501 + b'"', b"[[]]", b"1"],
    "logit_bias": [
        b'{"1": 1e400}', b"[[1]]", b'{"99999999999": 1}', b'[["a","b"]]',
        b"[" + b"[1,1]," * 100_000 + b"[1,1]]",
    ],
    "grammar": [b'"root ::= [a-z]+"', b'"' + b"root ::= root root " * 50_000 + b'"'],
    "json_schema": [b"{}", b'{"type":"object"}'],
    "response_format": [b'{"type":"json_object"}', b'{"type":"json_schema","json_schema":{}}'],
    "tools": [b'[{"type":"function"}]', b"1"],
    "priority": [b"101", b'"now"', b"1e2"],
    "stream": [b"1", b'"yes"'],
    "samplers": [b'["temperature"]', b"[[]]", b"{}"],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_is_left(stack: Stack) -> Iterator[None]:
    with nothing_is_left(stack):
        yield


def ask(stack: Stack, *parts: bytes, end: bool = False) -> Answer:
    """The only answer."""
    (answer,) = parse(send(stack.port, parts, end=end))
    return answer


@pytest.mark.parametrize("path", PATHS)
def test_a_broken_body_is_a_400_that_says_why(stack: Stack, path: str) -> None:
    for what, data in BROKEN.items():
        answer = ask(stack, post(path, data))
        assert answer.status == 400, (what, answer)
        assert 0 < len(answer.message) < 300, what


@pytest.mark.parametrize("path", PATHS[:3])
def test_a_field_out_of_bounds_is_a_400_that_names_it(stack: Stack, path: str) -> None:
    for name, values in FIELDS.items():
        for value in values:
            answer = ask(stack, post(path, with_field(name, value)))
            assert answer.status == 400, (name, value[:50], answer)
            if value != b"-Infinity" and not value.startswith(b"9999"):
                assert name in answer.message


@pytest.mark.parametrize(
    "key",
    [b'"a":1,"a":2', b'"prompt":"b","prompt":"c","messages":[],"messages":' + json.dumps(HELLO).encode()],
)
def test_a_key_twice_is_one_of_the_two(stack: Stack, key: bytes) -> None:
    for path in PATHS[:3]:
        answer = ask(stack, post(path, with_field("x", b"1," + key)))
        assert answer.status == 200, answer


def test_null_bytes_in_a_text_are_text(stack: Stack) -> None:
    text = "a\u0000b"
    tokens = json.loads(ask(stack, post("/tokenize", json.dumps({"content": text}).encode())).body)["tokens"]
    assert json.loads(ask(stack, post("/detokenize", json.dumps({"tokens": tokens}).encode())).body)[
        "content"
    ]
    fields = {
        "prompt": text,
        "messages": [{"role": "user", "content": text}],
        "stop": [text],
        "max_tokens": 1,
    }
    for path in PATHS[:3]:
        assert ask(stack, post(path, json.dumps(fields).encode())).status == 200


@pytest.mark.parametrize("wish", ["loop", "double", "escape"])
def test_a_hostile_chat_template_is_a_400_and_hurts_nobody(stack: Stack, wish: str) -> None:
    with Reply(stack.port, "/completion", body("/completion", "a", 100)) as other:
        other.wait_for("data:")
        messages = {"messages": [{"role": "user", "content": wish}]}
        reply = Reply(stack.port, "/v1/chat/completions", messages)
        assert reply.status == 400
        assert "chat template" in reply.json()["error"]["message"]
        assert other.read().objects[-1]["tokens_predicted"] == 100
    assert Reply(stack.port, "/v1/chat/completions", {"messages": HELLO, "max_tokens": 1}).status == 200


# --- below JSON -----------------------------------------------------------------------------------

GOOD = json.dumps({"prompt": "a", "n_predict": 1}).encode()
CHUNKED = (
    b"POST /completion HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
)
REFUSED = {
    "no request": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no version": b"GET /health\r\n\r\n",
    "another version": b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "a method of no letters": b"G\xc3\x84T /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a path of no letters": b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "a length below zero": post("/completion", GOOD, length=-1),
    "a length that is none": post("/completion", GOOD, length="0x10"),
    "two lengths": post("/completion", GOOD, "Content-Length: 3"),
    "length and chunks": post("/completion", GOOD, "Transfer-Encoding: chunked"),
    "another encoding": CHUNKED.replace(b"chunked", b"gzip, chunked"),
    "a chunk of no size": CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n",
    "a chunk below zero": CHUNKED + b"-5\r\nabc\r\n0\r\n\r\n",
    "a header without a name": b"GET /health HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n",
    "a header that is none": b"GET /health HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n",
    "a null in a header": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: a\x00b\r\n\r\n",
    "thousands of headers": b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 5000 + b"\r\n",
    "a header without end": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: "
    + b"a" * 100_000
    + b"\r\n\r\n",
    "a path without end": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_http_is_refused_and_the_connection_closed(stack: Stack, what: str) -> None:
    said = send(stack.port, [REFUSED[what]], end=True)
    assert said == b"" or {answer.status for answer in parse(said)} == {400}


TAKEN = {
    "HTTP/1.0": post("/completion", GOOD, version="1.0"),
    "a form": post("/completion", GOOD, "Content-Type: application/x-www-form-urlencoded"),
    "a byte order mark": post("/completion", codecs.BOM_UTF8 + GOOD),
    "a broken form": post("/completion", GOOD, "Content-Type: multipart/form-data; boundary="),
    "no type": post("/completion", GOOD, "Content-Type: \xff/\xff;;;"),
    "chunks of a byte": CHUNKED + b"".join(b"1\r\n%c\r\n" % c for c in GOOD) + b"0\r\n\r\n",
    "a header twice": post("/completion", GOOD, "X-Berth-Notices: off", "X-Berth-Notices: \xff"),
    "wild headers": post(
        "/completion",
        GOOD,
        "Accept: " + "*" * 5000,
        "X-Forwarded-For: ,,\xff",
        "Range: bytes=1-",
    ),
}


@pytest.mark.parametrize("what", TAKEN)
def test_what_is_odd_but_clear_is_answered(stack: Stack, what: str) -> None:
    assert ask(stack, TAKEN[what]).status == 200


def test_a_compressed_body_is_a_415_that_says_what_to_do(stack: Stack) -> None:
    answer = ask(stack, post("/completion", gzip.compress(GOOD), "Content-Encoding: gzip"))
    assert answer.status == 415
    assert answer.message == "The request body is compressed. Send it without a Content-Encoding."


@pytest.mark.parametrize(
    "header", ["Last-Event-ID", "Authorization", "X-Api-Key", "Cookie", "X-Berth-Notices", "Upgrade"]
)
def test_a_wild_header_is_no_error_of_the_server(stack: Stack, header: str) -> None:
    for value in (
        "9" * 200,
        "-1",
        "\xff" * 50,
        '"\\000"',
        "a=b; " * 500,
        "Bearer " + "x" * 5000,
        "websocket",
    ):
        said = send(stack.port, [post("/completion", GOOD, f"{header}: {value}")])
        assert {answer.status // 100 for answer in parse(said)} <= {2, 4}, (value, said[:300])


def test_pipelined_requests_are_answered_in_their_order(stack: Stack) -> None:
    def one(text: str) -> bytes:
        data = json.dumps({"content": text}).encode()
        return post("/tokenize", data).replace(b"Connection: close", b"X: y")

    texts = ["a", "a b", "a b c", "a b c d"]
    last = post("/nothing-more", b"")
    broken = post("/tokenize", b"{").replace(b"Connection: close", b"X: y")
    answers = parse(send(stack.port, [b"".join(map(one, texts)) + broken + last]))
    assert [answer.status for answer in answers[:5]] == [200, 200, 200, 200, 400]
    counts = [len(json.loads(answer.body)["tokens"]) for answer in answers[:4]]
    assert counts == sorted(set(counts))
    assert len(answers) == 6


@pytest.mark.parametrize("sent", [0, 1, len(GOOD) - 1])
def test_an_upload_that_breaks_off_is_forgotten(stack: Stack, sent: int) -> None:
    whole = post("/completion", GOOD)
    for data in (whole[: len(whole) - len(GOOD) + sent], CHUNKED + b"%x\r\n" % len(GOOD) + GOOD[:sent]):
        assert send(stack.port, [data], end=True) == b""


def test_a_body_that_is_too_large_is_a_413(stack: Stack) -> None:
    answer = ask(stack, post("/completion", b" " * (MAX_BODY + 1)))
    assert answer.status == 413
    assert "MiB" in answer.message


@pytest.mark.parametrize("path", PATHS)
def test_a_body_with_more_values_than_can_be_read_while_others_wait_is_a_413(stack: Stack, path: str) -> None:
    answer = ask(stack, post(path, with_field("tokens", b"[" + b"1," * 2**18 + b"1]")))
    assert answer.status == 413
    assert "262144 values" in answer.message


@pytest.mark.parametrize("head", [CHUNKED, post("/completion", b"", length=10**15)])
def test_a_body_without_end_is_cut_off(stack: Stack, head: bytes) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        yield head
        while sent < 20 * MAX_BODY:
            sent += 1 << 20
            yield b"100000\r\n" + b" " * (1 << 20) + b"\r\n"

    said = send(stack.port, endless())
    assert sent < 4 * MAX_BODY
    assert said == b"" or parse(said)[0].status == 413


PATHS_OF_NO_USE = [
    "/v1", "/v1/", "/v1//models",
    "/slots/0/?action=park", "/slots/", "/slots/x?action=park", "/slots/-1?action=park",
    "/slots/99999999999999999999?action=park", "/slots/0?action=park&id=%00", "/slots/0?" + "a=b&" * 3000,
    "/chats/99999999999999999999999999/", "/chats/0/", "/generations/x/events", "/generations/%00/events",
    "/static/%00", "/static/../../etc/passwd", "/static/%2e%2e/%2e%2e/settings.py",
    "/%00", "/%ff%fe", "//", "/a" * 2000,
    "/admin/inference/generation/x/change/", "/admin/inference/chat/99999999999999999999999/change/",
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "POST", "BREW"])
def test_no_path_is_an_error_of_the_server(stack: Stack, method: str) -> None:
    for path in PATHS_OF_NO_USE:
        answer = ask(stack, post(path, b"{}").replace(b"POST", method.encode(), 1))
        assert 300 <= answer.status < 500, (path, answer)
        if path.startswith(("/v1", "/slots")):
            assert answer.message
