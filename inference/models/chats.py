"""Conversations: a tree of messages, of which one path is read."""

from __future__ import annotations

import secrets
from typing import Self

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone
from django.utils.text import Truncator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

TITLE_LENGTH = 60  # characters of a title made from a message


class ChatQuerySet(models.QuerySet["Chat"]):
    def of(self, user: User) -> Self:
        """This person's, without those that are deleted."""
        return self.filter(user=user, deleted_at=None)


class Chat(models.Model):
    """One person's conversation."""

    class TitledBy(models.TextChoices):
        FIRST_WORDS = "", _("its first words")
        MODEL = "model", _("the model")
        PERSON = "person", _("its owner")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="chats")
    title = models.CharField(max_length=200, blank=True)
    titled_by = models.CharField(
        max_length=16, choices=TitledBy, default=TitledBy.FIRST_WORDS, blank=True, editable=False
    )
    leaf = models.ForeignKey(
        "Message",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
        help_text=_("The last message of the path that is read."),
    )
    system_prompt = models.TextField(blank=True)
    temperature = models.FloatField(null=True, blank=True, help_text=_("Empty: the server's."))
    top_p = models.FloatField(null=True, blank=True, help_text=_("Empty: the server's."))
    max_tokens = models.PositiveIntegerField(null=True, blank=True, help_text=_("Empty: the server's limit."))
    seed = models.BigIntegerField(null=True, blank=True, help_text=_("Empty: another one each time."))
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text=_("It can be had back until it is purged.")
    )

    objects = ChatQuerySet.as_manager()

    class Meta:
        ordering = ("-updated_at", "-pk")
        indexes = (
            models.Index(fields=("user", "-updated_at")),
            models.Index(fields=("-updated_at", "-id")),
            models.Index(fields=("-created_at",)),
            models.Index(fields=("deleted_at",), condition=~models.Q(deleted_at=None), name="deleted_chats"),
        )

    def __str__(self) -> str:
        return self.title or gettext("Chat %(pk)s") % {"pk": self.pk}

    @staticmethod
    def title_for(text: str) -> str:
        """A title made of the first words of `text`, on one line."""
        return Truncator(" ".join(text.split())).chars(TITLE_LENGTH)

    def add(
        self, role: str, content: str = "", *, after: Message | None = None, beside: Message | None = None
    ) -> Message:
        """Another message: `after` one, `beside` one as another version of it, or at the end of the path,
        which then ends with the new one."""
        parent = beside.parent_id if beside else after.pk if after else self.leaf_id
        message = self.messages.create(role=role, content=content, parent_id=parent)
        self._read(message, message)
        return message

    def show(self, message: Message) -> None:
        """Lead the path by `message`, and on from there as it was last read."""
        by_id = {each.pk: each for each in self.messages.defer("content")}
        newest = {each.parent_id: pk for pk, each in by_id.items()}
        leaf = by_id[message.pk]
        while after := leaf.next_id or newest.get(leaf.pk):
            leaf = by_id[after]
        self._read(message, leaf)

    def _read(self, message: Message, leaf: Message) -> None:
        """From now on the path comes by `message` and ends at `leaf`."""
        if message.parent_id:
            self.messages.filter(pk=message.parent_id).update(next=message)
        self.leaf = leaf
        self.save(update_fields=["leaf"])

    def path(self) -> list[Message]:
        """The messages that are read, oldest first: from the first one to `leaf`."""
        by_id = {message.pk: message for message in self.messages.all()}
        path: list[Message] = []
        at = self.leaf_id
        while at is not None:
            path.append(by_id[at])
            at = by_id[at].parent_id
        return path[::-1]

    def history(self) -> list[dict[str, str]]:
        """The path as the model reads it, without answers that have no text yet."""
        return [{"role": m.role, "content": m.content} for m in self.path() if m.content]


class Message(models.Model):
    """One turn of a chat. The assistant's is created empty with its generation; the recorder fills it."""

    class Role(models.TextChoices):
        SYSTEM = "system", _("System")
        USER = "user", _("User")
        ASSISTANT = "assistant", _("Assistant")

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="messages")
    parent = models.ForeignKey(
        "self",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="children",
        help_text=_("The message before it; its siblings are other versions of it."),
    )
    next = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
        help_text="The version of the message after it that was last read. Empty: the newest.",
    )
    role = models.CharField(max_length=16, choices=Role)
    content = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("pk",)
        indexes = (models.Index(fields=("-created_at", "-id")),)

    def __str__(self) -> str:
        return f"{self.get_role_display()} message {self.pk}"


class Share(models.Model):
    """A link by which anybody may read one chat, as it was when the link was made."""

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="shares")
    token = models.CharField(max_length=43, unique=True, default=secrets.token_urlsafe, editable=False)
    leaf = models.ForeignKey(
        Message, on_delete=models.CASCADE, related_name="+", help_text=_("The last message that is shown.")
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("-created_at", "-pk")

    def __str__(self) -> str:
        return f"Link to {self.chat}"
