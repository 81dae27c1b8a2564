from __future__ import annotations

import itertools
import random

import pytest

from inference.messages import Accepted, Event, Failed, GenerationRequest, Preempted, Resumed, Started, Token
from inference.wire import openai, sse
from inference.wire.api import Api
from inference.wire.errors import RequestError
from inference.wire.ids import Ids, parse
from inference.wire.llamacpp import COMPLETION
from inference.wire.siblings import SiblingsEncoder
from tests.broker.play import END

ID = "0123456789abcdef" * 2
PARK = Preempted(0, "pressure", 5, 50)
LIFE: list[Event] = [
    Accepted(3, 1, 9),
    Started(0),
    Token(1, ""),
    Token(2, 'id: 1\n\ndata: {"x"}'),
    PARK,
    Resumed(0, 1.0),
    Token(3, "b"),
    Token(4, "c"),
]
BROKE = Failed(500, "server_error", "it broke")
APIS = [openai.CHAT, openai.COMPLETIONS, COMPLETION]
ABOUT = {"id": ID, "model": "tiny", "created": 0}


def events_of(raw: bytes) -> list[bytes]:
    return raw.split(b"\n\n")[:-1]


def id_of(event: bytes) -> bytes:
    return event.partition(b"\n")[0].removeprefix(b"id: ") if event.startswith(b"id: ") else b""


def without_ids(raw: bytes) -> bytes:
    return b"".join(event[event.find(b"\n") + 1 :] + b"\n\n" if id_of(event) else event + b"\n\n"
                    for event in events_of(raw))  # fmt: skip


def request(api: Api, n: int) -> GenerationRequest:
    if api is openai.CHAT:
        return GenerationRequest(messages=({"role": "user", "content": "hi"},), n=n)
    return GenerationRequest(prompt="hi", n=n)


def stream(api: Api, last: Event, ids: Ids) -> bytes:
    encoder = api.encoder(request(api, 1), {"stream_options": {"include_usage": True}}, **ABOUT)  # type: ignore[arg-type]
    return b"".join(ids(encoder.event(event)) for event in [*LIFE, last])


def merged(api: Api, order: list[int], ids: Ids) -> bytes:
    """Two choices whose events come in this order."""
    body = {"stream_options": {"include_usage": True}}
    encoder = SiblingsEncoder(api, request(api, 2), body, **ABOUT)  # type: ignore[arg-type]
    lives = [iter([*LIFE, END]), iter([*LIFE, END])]
    parts = [ids(encoder.event(index, next(lives[index])), index) for index in order]
    return b"".join([*parts, ids(encoder.closing())])


@pytest.mark.parametrize("last", [END, BROKE])
@pytest.mark.parametrize("api", APIS)
def test_every_data_event_has_an_id_and_nothing_else_has_changed(api, last):
    raw = stream(api, last, Ids(ID))
    assert without_ids(raw) == stream(api, last, Ids(ID, shown=False))
    data = [event for event in events_of(raw) if not event.startswith(b":")]
    assert [id_of(event) for event in data] == [f"{ID}.{n}".encode() for n in range(1, len(data) + 1)]


@pytest.mark.parametrize("last", [END, BROKE])
@pytest.mark.parametrize("api", APIS)
def test_after_each_id_the_stream_goes_on_with_exactly_the_rest(api, last):
    raw = stream(api, last, Ids(ID))
    for event in events_of(raw):
        if id := id_of(event):
            rest = raw[raw.index(event) + len(event) + 2 :]
            seen = parse(id)
            assert stream(api, last, Ids(seen.job_id, 1, seen.counts)) == rest
            plain = stream(api, last, Ids(seen.job_id, 1, seen.counts, shown=False))
            assert plain == without_ids(rest)


@pytest.mark.parametrize("api", APIS)
def test_choices_go_on_after_each_id_whatever_order_their_events_came_in(api):
    chance = random.Random(1)
    orders = [[0] * 9 + [1] * 9 for _ in range(3)]
    for order in orders:
        chance.shuffle(order)

    def of_choice(raw: bytes, index: int) -> list[bytes]:
        own = f'"index":{index}'.encode()
        return [event for event in events_of(without_ids(raw)) if own in event]

    for first, second in itertools.permutations(orders, 2):
        raw = merged(api, first, Ids(ID, 2))
        data = [event for event in events_of(raw) if id_of(event)]
        for n, event in enumerate(data):
            seen = parse(id_of(event))
            rest = merged(api, second, Ids(seen.job_id, 2, seen.counts))
            had = b"".join(event + b"\n\n" for event in data[: n + 1])
            for index in range(2):
                assert of_choice(had, index) + of_choice(rest, index) == of_choice(raw, index)
            assert without_ids(had + rest).count(sse.DONE) == raw.count(b"[DONE]")
            assert (had + rest).count(b'"usage"') == raw.count(b'"usage"')
            if len(had) < len(raw) and n < len(data) - 1:  # what the second says last is what the first did
                assert id_of(events_of(rest)[-1]) == id_of(data[-1])


def test_without_ids_a_stream_is_as_it_was_encoded():
    raw = b": ping\n\ndata: 1\n\n"
    assert Ids(ID, shown=False)(raw) is raw


def test_what_the_client_has_beyond_the_end_is_noticed():
    ids = Ids(ID, 1, (99,))
    assert stream(COMPLETION, END, ids) == b""
    assert ids.is_behind


@pytest.mark.parametrize(
    "header",
    ["", "7", ID, f"{ID}.", f"{ID}.x", f"{ID}.0", f"{ID}.0-0", f"{ID}.1-", f"{ID}.-1", f"{ID[:-1]}.1",
     f"{ID}.1.2", f"{ID}.{'1' * 11}", f"{ID}.{'-'.join('1' * 129)}", f"{ID.upper()}.1", "ÿ"],
)  # fmt: skip
def test_an_id_that_is_none_is_a_400(header):
    with pytest.raises(RequestError) as refused:
        parse(header.encode("latin-1"))
    assert refused.value.status == 400


def test_an_id_says_how_far_each_choice_is():
    assert parse(f" {ID}.3-0-12 ".encode()) == (ID, (3, 0, 12))
