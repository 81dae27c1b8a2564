from __future__ import annotations

from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext_lazy as _

from inference.messages import HIGHEST, LOWEST, RANDOM_SEED
from inference.models import Chat

TEXT_LIMIT = 100_000  # characters; what the model can take is for the worker to say


class MessageForm(forms.Form):
    text = forms.CharField(
        max_length=TEXT_LIMIT,
        strip=False,
        error_messages={
            "required": _("Write a message first."),
            "max_length": _("The message is too long: 100,000 characters at most."),
        },
    )

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"].replace("\r\n", "\n").strip("\n")
        if not text.strip():
            raise forms.ValidationError(_("Write a message first."))
        return text


class SendForm(MessageForm):
    """A message and the one that it follows, which is the last that its writer has seen."""

    after = forms.IntegerField(
        required=False, error_messages={"invalid": _("Reload the page and try again.")}
    )


class TitleForm(forms.Form):
    title = forms.CharField(
        max_length=200,
        error_messages={
            "required": _("Give the chat a name."),
            "max_length": _("The name is too long: 200 characters at most."),
        },
    )

    def clean_title(self) -> str:
        title = " ".join(self.cleaned_data["title"].split())
        if not any(letter.isprintable() and letter != " " for letter in title):  # nobody would see it
            raise forms.ValidationError(self.fields["title"].error_messages["required"])
        return title


def _between(low: float, high: float, message: Any) -> list[Any]:
    return [MinValueValidator(low, message), MaxValueValidator(high, message)]


TEMPERATURE = _("The temperature is a number from 0 to 2.")
TOP_P = _("Top P is a number above 0, up to 1.")
MAX_TOKENS = _("The longest answer is a whole number of tokens from 1 to 1,000,000.")
SEED = _("The seed is a whole number from 0 to 4,294,967,294.")


class NumberField(forms.FloatField):
    """Takes a comma for the point, as many people write it."""

    def to_python(self, value: Any) -> Any:
        return super().to_python(value.replace(",", ".") if isinstance(value, str) else value)


class ChatSettingsForm(forms.Form):
    """How a chat is answered. What is empty is the server's default."""

    system_prompt = forms.CharField(
        max_length=20_000,
        required=False,
        strip=False,
        error_messages={"max_length": _("The system prompt is too long: 20,000 characters at most.")},
    )
    temperature = NumberField(
        required=False, validators=_between(0, 2, TEMPERATURE), error_messages={"invalid": TEMPERATURE}
    )
    top_p = NumberField(
        required=False, validators=_between(1e-6, 1, TOP_P), error_messages={"invalid": TOP_P}
    )
    max_tokens = forms.IntegerField(
        required=False, validators=_between(1, 1_000_000, MAX_TOKENS), error_messages={"invalid": MAX_TOKENS}
    )
    seed = forms.IntegerField(
        required=False, validators=_between(0, RANDOM_SEED - 1, SEED), error_messages={"invalid": SEED}
    )

    @classmethod
    def of(cls, chat: Chat | None) -> ChatSettingsForm:
        """What a chat has; of None, what a new one has."""
        return cls({name: getattr(chat, name) for name in cls.base_fields} if chat else {})

    @property
    def is_set(self) -> bool:
        """Whether anything is not the server's default."""
        return any(value not in (None, "") for value in self.data.values())

    def clean_system_prompt(self) -> str:
        text: str = self.cleaned_data["system_prompt"].replace("\r\n", "\n")
        return text if text.strip() else ""


class WorkerForm(forms.Form):
    """What is done with a worker."""

    worker = forms.CharField()


class ByHandForm(WorkerForm):
    """What is done with a chat."""

    generation = forms.UUIDField()


class PriorityForm(ByHandForm):
    priority = forms.IntegerField(min_value=HIGHEST, max_value=LOWEST)
