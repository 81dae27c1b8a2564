from django import forms

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


class ByHandForm(forms.Form):
    worker = forms.CharField()
    generation = forms.UUIDField()
