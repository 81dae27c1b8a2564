from __future__ import annotations

import pytest

from inference.wire import prompts
from inference.wire.errors import RequestError
from inference.wire.llamacpp import COMPLETION, parse_apply_template, parse_detokenize, parse_tokenize
from inference.wire.openai import CHAT, COMPLETIONS
from tests.wire.examples import DEFAULTS

completions = pytest.mark.parametrize("api", [COMPLETIONS, COMPLETION], ids=lambda api: api.name)


def chat(*messages):
    return CHAT.parse({"messages": list(messages)}, DEFAULTS).messages


@completions
@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("Once", "Once"),
        ("", ""),
        ([1, 2, 3], (1, 2, 3)),
        ([1, "two", 3], (1, "two", 3)),
        (["a"], "a"),
        ([[1, 2]], (1, 2)),
        ([["a", 2]], ("a", 2)),
        ([0], (0,)),
    ],
)
def test_a_prompt_is_text_or_token_ids_or_both(api, given, taken):
    request = api.parse({"prompt": given}, DEFAULTS)
    assert (request.prompt, request.messages) == (taken, None)


@completions
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (None, "is required"),
        (3, "must be a string or a list"),
        (True, "must be a string or a list"),
        ({"prompt_string": "a", "multimodal_data": []}, "must be a string or a list"),
        ([], "must not be an empty list"),
        ([[]], "must not be an empty list"),
        (["a", []], "must not be an empty list"),
        ([[1], 2], "must be a string or a list"),
        ([1, 2.5], "only token ids"),
        ([-1], "only token ids"),
        ([2**31], "only token ids"),
        ([True], "only token ids"),
        ([1, True], "only token ids"),
        (["a", True], "only token ids"),
        (["a", 1, -1], "only token ids"),
        ([[1]] * 129, "129 prompts: at most 128 choices"),
        ([None], "only token ids"),
        ([[[1]]], "only token ids"),
    ],
)
def test_any_other_prompt_is_refused(api, given, reason):
    with pytest.raises(RequestError, match=reason) as e:
        api.parse({"prompt": given}, DEFAULTS)
    assert (e.value.status, e.value.param) == (400, "prompt")


@completions
@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["a", "b"], ("a", "b")),
        (["a", ""], ("a", "")),
        ([[1], [2, 3]], ((1,), (2, 3))),
        ([[1, "a"], "b"], ((1, "a"), "b")),
    ],
)
def test_a_list_of_prompts_is_several(api, given, taken):
    request = api.parse({"prompt": given}, DEFAULTS)
    assert (request.prompt, request.prompts, request.messages) == (None, taken, None)
    assert [choice.prompt for choice in request.choices()] == list(taken)


@completions
def test_a_prompt_is_required(api):
    with pytest.raises(RequestError, match='"prompt" is required'):
        api.parse({}, DEFAULTS)


def test_messages_keep_their_roles_and_order():
    roles = ["system", "user", "assistant", "tool", "user"]
    assert [m["role"] for m in chat(*[{"role": r, "content": r} for r in roles])] == roles


def test_a_conversation_has_an_end():
    message = {"role": "user", "content": "a"}
    assert len(chat(*[message] * prompts.MOST_MESSAGES)) == prompts.MOST_MESSAGES
    with pytest.raises(RequestError, match="at most 16384"):
        chat(*[message] * (prompts.MOST_MESSAGES + 1))


def test_a_developer_speaks_as_the_system():
    assert chat({"role": "developer", "content": "Be brief."}) == (
        {"role": "system", "content": "Be brief."},
    )


def test_text_parts_are_joined_by_newlines():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert chat({"role": "user", "content": parts})[0]["content"] == "a\nb"


def test_an_assistants_content_may_be_null():
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    assert chat(message) == ({"role": "assistant", "content": "", "tool_calls": calls},)
    assert chat({"role": "assistant"})[0]["content"] == ""


def test_unknown_fields_of_a_message_are_dropped():
    message = {"role": "tool", "content": "3", "tool_call_id": "1", "name": "f", "refusal": None, "x": 1}
    assert chat(message) == ({"role": "tool", "content": "3", "name": "f", "tool_call_id": "1"},)


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (None, "non-empty list"),
        ([], "non-empty list"),
        ("hi", "non-empty list"),
        ({"role": "user"}, "non-empty list"),
        (["hi"], r'"messages\[0\]" must be an object'),
        ([{"content": "a"}], r'"messages\[0\].role" must be one of system, developer, user, assistant, tool'),
        ([{"role": "bot", "content": "a"}], r"messages\[0\].role"),
        ([{"role": ["user"], "content": "a"}], r"messages\[0\].role"),
        ([{"role": "user"}], r"messages\[0\].content"),
        ([{"role": "user", "content": None}], r"messages\[0\].content"),
        ([{"role": "user", "content": 5}], r"messages\[0\].content"),
        ([{"role": "user", "content": "a"}, {"role": "user", "content": {}}], r"messages\[1\].content"),
        ([{"role": "user", "content": ["a"]}], r"messages\[0\].content\[0\]"),
        ([{"role": "user", "content": [{"type": "text"}]}], r"messages\[0\].content\[0\].text"),
        ([{"role": "user", "content": [{"type": "text", "text": 1}]}], r"content\[0\].text"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], "only text is supported"),
    ],
)
def test_any_other_messages_are_refused(messages, reason):
    with pytest.raises(RequestError, match=reason) as e:
        CHAT.parse({"messages": messages}, DEFAULTS)
    assert (e.value.status, e.value.param) == (400, "messages")


def test_tokenize_has_llama_servers_defaults():
    usual = {"content": "a", "add_special": False, "parse_special": True, "with_pieces": False}
    assert parse_tokenize({"content": "a", "other": 1}) == usual
    turned = {"content": "", "add_special": True, "parse_special": False, "with_pieces": True}
    assert parse_tokenize(turned) == turned


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ([], None),
        ({}, "content"),
        ({"content": 1}, "content"),
        ({"content": "a", "add_special": 1}, "add_special"),
        ({"content": "a", "parse_special": "no"}, "parse_special"),
        ({"content": "a", "with_pieces": 0}, "with_pieces"),
    ],
)
def test_a_bad_tokenize_body_is_refused(body, param):
    with pytest.raises(RequestError) as e:
        parse_tokenize(body)
    assert (e.value.status, e.value.param) == (400, param)


def test_detokenize_takes_token_ids():
    assert parse_detokenize({"tokens": [1, 2]}) == {"tokens": [1, 2]}
    assert parse_detokenize({"tokens": []}) == {"tokens": []}


@pytest.mark.parametrize("tokens", [None, 1, "1", ["1"], [1.0], [-1], [True], [2**31]])
def test_anything_else_is_not_detokenized(tokens):
    with pytest.raises(RequestError, match='"tokens"') as e:
        parse_detokenize({"tokens": tokens})
    assert e.value.status == 400


def test_apply_template_takes_a_chats_messages():
    messages = [{"role": "user", "content": "a"}]
    assert parse_apply_template({"messages": messages}) == {"messages": messages}
    with pytest.raises(RequestError, match='"messages"'):
        parse_apply_template({})
