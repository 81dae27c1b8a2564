"""The model's chat template, run in Jinja's sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jinja2 import TemplateError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)  # for a model that brings no template


class TemplateFailure(Exception):
    """The template could not be parsed, or refused these messages; the message says why."""


class ChatTemplate:
    """Renders messages as the model was trained to read them. Raises TemplateFailure."""

    def __init__(self, source: str, *, bos: str, eos: str) -> None:
        self.source = source or CHATML
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals |= {
            "raise_exception": _refuse,
            "strftime_now": lambda form: datetime.now().strftime(form),
            "bos_token": bos,
            "eos_token": eos,
        }
        try:
            self._template = environment.from_string(self.source)
        except TemplateError as error:
            raise TemplateFailure(f"the model's chat template is broken: {error}") from error

    def render(self, messages: Sequence[dict[str, Any]]) -> str:
        """The prompt for these messages, ending where the assistant's answer begins."""
        try:
            return str(self._template.render(messages=list(messages), add_generation_prompt=True))
        except SecurityError as error:
            raise TemplateFailure(f"the chat template did something it may not: {error}") from error
        except TemplateFailure:
            raise
        except Exception as error:  # a template is a program of the model's author: anything can come out
            raise TemplateFailure(f"the chat template cannot render these messages: {error}") from error


def _refuse(message: str) -> None:
    raise TemplateFailure(f"the chat template refuses these messages: {message}")
