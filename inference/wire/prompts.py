"""What to generate from: a completion's prompts, or a chat's messages."""

from __future__ import annotations

from typing import Any

from inference.messages import Prompt
from inference.wire.choices import MAX_CHOICES
from inference.wire.errors import RequestError, invalid
from inference.wire.fields import Body, are_token_ids

ROLES = ("system", "developer", "user", "assistant", "tool")
_KEPT = ("name", "tool_calls", "tool_call_id")  # for the templates that know them
MOST_MESSAGES = 2**14
MOST_NESTED = 32  # of tool calls, whose arguments can be anything


def prompts(body: Body) -> tuple[Prompt, ...]:
    """One prompt or several: a list of prompts is told from a prompt that is a list by what it holds."""
    value = body.get("prompt")
    if not (isinstance(value, list) and _holds_prompts(value)):
        return (_prompt(value),)
    if len(value) > MAX_CHOICES:
        raise invalid("prompt", f"{len(value)} prompts: at most {MAX_CHOICES} choices a request.")
    return tuple(map(_prompt, value))


def source(found: tuple[Prompt, ...]) -> dict[str, Any]:
    """The field of a GenerationRequest that these prompts are."""
    return {"prompt": found[0]} if len(found) == 1 else {"prompts": found}


def _prompt(value: Any) -> Prompt:
    """A text, or a list of token ids and texts."""
    if isinstance(value, str):
        return value
    if value is None:
        raise invalid("prompt", '"prompt" is required.')
    if not isinstance(value, list):
        raise invalid("prompt", '"prompt" must be a string or a list of token ids and strings.')
    if not value:
        raise invalid("prompt", '"prompt" must not be an empty list.')
    if not are_token_ids(value, or_texts=True):
        raise invalid("prompt", '"prompt" may list only token ids (integers of at least 0) and strings.')
    return tuple(value)


def _holds_prompts(values: list[Any]) -> bool:
    """Whether a list is of prompts, not itself one: lists, or strings alone."""
    types = set(map(type, values))
    return list in types or types == {str}


def messages(body: Body) -> tuple[dict[str, Any], ...]:
    """The conversation, each message's content flattened to one string."""
    value = body.get("messages")
    if not isinstance(value, list) or not value:
        raise invalid("messages", '"messages" must be a non-empty list.')
    if len(value) > MOST_MESSAGES:
        raise invalid("messages", f'"messages" may hold at most {MOST_MESSAGES}.')
    return tuple(_message(message, f"messages[{i}]") for i, message in enumerate(value))


def _message(message: Any, where: str) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise invalid("messages", f'"{where}" must be an object.')
    role = message.get("role")
    if role not in ROLES:
        raise invalid("messages", f'"{where}.role" must be one of {", ".join(ROLES)}.')
    content = _content(message.get("content"), role, where)
    for key in ("name", "tool_call_id"):
        if not isinstance(message.get(key), str | None):
            raise invalid("messages", f'"{where}.{key}" must be a string.')
    calls = message.get("tool_calls")
    if calls is not None and not (isinstance(calls, list) and all(isinstance(c, dict) for c in calls)):
        raise invalid("messages", f'"{where}.tool_calls" must be a list of objects.')
    if calls and _depth_is_over(MOST_NESTED, calls):
        raise invalid("messages", f'"{where}.tool_calls" is nested more than {MOST_NESTED} deep.')
    flat = {"role": "system" if role == "developer" else role, "content": content}
    return flat | {key: message[key] for key in _KEPT if message.get(key) is not None}


def _content(content: Any, role: str, where: str) -> str:
    if isinstance(content, str):
        return content
    if content is None and role == "assistant":
        return ""
    if not isinstance(content, list):
        raise invalid("messages", f'"{where}.content" must be a string or a list of text parts.')
    for i, part in enumerate(content):
        if not _is_text(part):
            raise _no_text(part, f"{where}.content[{i}]")
    return "\n".join(part["text"] for part in content)


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _no_text(part: Any, where: str) -> RequestError:
    """Why it is none."""
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        return invalid("messages", f'"{where}" must be an object with a "type".')
    if part["type"] != "text":
        return invalid("messages", f'"{where}" is of type "{part["type"]}": only text is supported here.')
    return invalid("messages", f'"{where}.text" must be a string.')


def _depth_is_over(most: int, value: Any) -> bool:
    level = [value]
    for _ in range(most):
        parts = [
            part.values() if isinstance(part, dict) else part
            for part in level
            if isinstance(part, dict | list)
        ]
        level = [part for its in parts for part in its]
    return bool(level)
