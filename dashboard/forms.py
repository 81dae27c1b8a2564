from django import forms

from inference.messages import HIGHEST, LOWEST

TEXT_LIMIT = 100_000  # characters; what the model can take is for the worker to say


class MessageForm(forms.Form):
    text = forms.CharField(
        max_length=TEXT_LIMIT,
        strip=False,
        error_messages={
            "required": "Write a message first.",
            "max_length": f"The message is too long: {TEXT_LIMIT:,} characters at most.",
        },
    )

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"].replace("\r\n", "\n").strip("\n")
        if not text.strip():
            raise forms.ValidationError("Write a message first.")
        return text


class SendForm(MessageForm):
    """A message and the one that it follows, which is the last that its writer has seen."""

    after = forms.IntegerField(required=False, error_messages={"invalid": _("Reload the page and try again.")})


class WorkerForm(forms.Form):
    """What is done with a worker."""

    worker = forms.CharField()


class ByHandForm(WorkerForm):
    """What is done with a chat."""

    generation = forms.UUIDField()


class PriorityForm(ByHandForm):
    priority = forms.IntegerField(min_value=HIGHEST, max_value=LOWEST)
