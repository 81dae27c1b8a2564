"""What the rows say of themselves, and what a key gives away."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.utils import timezone

from inference.models import ApiKey, Chat, Generation, Message, Preemption

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


def test_history_is_what_the_model_reads_oldest_first(ada):
    chat = Chat.objects.create(user=ada)
    chat.add("user", "Hello")
    chat.add("assistant", "Hi")
    chat.add("user", "And now?")
    assert chat.history() == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "And now?"},
    ]


def test_what_is_read_is_one_path_of_the_tree(ada):
    chat = Chat.objects.create(user=ada)
    question = chat.add("user", "Hello")
    first = chat.add("assistant", "Hi")
    second = chat.add("assistant", "Good day", after=question)
    assert chat.path() == [question, second]
    chat.leaf = first
    assert chat.path() == [question, first]


def test_chats_from_before_there_were_branches_become_paths(ada):
    chats = [Chat.objects.create(user=ada) for _ in range(2)]
    made = [chat.messages.create(role="user", content=text) for text in "abc" for chat in chats]
    Chat.objects.create(user=ada)
    import_module("inference.migrations.0007_chat_tree").link(apps, None)
    for i, chat in enumerate(chats):
        chat.refresh_from_db()
        assert chat.path() == made[i::2]


def test_history_leaves_out_the_answer_that_is_still_empty(ada):
    chat = Chat.objects.create(user=ada)
    chat.add("user", "Hello")
    chat.add("assistant")
    assert [turn["role"] for turn in chat.history()] == ["user"]


def test_a_title_is_one_short_line():
    assert Chat.title_for("  two\n\nlines ") == "two lines"
    assert len(Chat.title_for("word " * 100)) == 60


def test_names_never_show_the_text_of_a_message(ada):
    chat = Chat.objects.create(user=ada)
    message = chat.add("user", "a secret")
    generation = Generation.objects.create(message=message, error="a secret")
    park = Preemption.objects.create(generation=generation, parked_at=timezone.now())
    for row in (chat, message, generation, park):
        assert "secret" not in str(row)
    assert str(message) == f"User message {message.pk}"


@pytest.mark.parametrize(
    ("state", "over"),
    [
        ("queued", False),
        ("running", False),
        ("parked", False),
        ("finished", True),
        ("cancelled", True),
        ("failed", True),
    ],
)
def test_a_generation_is_over_when_nothing_more_will_come(state, over):
    assert Generation(state=state).is_over is over


def test_deleting_a_chat_keeps_the_generations_that_wrote_it(ada):
    chat = Chat.objects.create(user=ada)
    generation = Generation.objects.create(user=ada, message=chat.add("assistant"))
    chat.delete()
    generation.refresh_from_db()
    assert generation.message is None
    assert not Message.objects.exists()


def test_a_key_is_stored_as_a_hash_and_found_by_the_key_itself(ada):
    row, plain = ApiKey.objects.create_key("laptop", ada)
    stored = ApiKey.objects.values().get()
    assert plain not in [str(value) for value in stored.values()]
    assert plain.startswith(row.prefix)
    assert len(plain) - len(row.prefix) >= 32
    assert ApiKey.objects.usable().with_key(plain).get() == row
    assert not ApiKey.objects.with_key(plain + "x").exists()


def test_a_revoked_key_is_not_usable(ada):
    row, plain = ApiKey.objects.create_key("laptop", ada)
    row.revoked_at = timezone.now()
    row.save()
    assert not row.is_usable
    assert not ApiKey.objects.usable().with_key(plain).exists()


def test_an_expired_key_is_not_usable():
    row, _ = ApiKey.objects.create_key("old", expires_at=timezone.now() - timedelta(seconds=1))
    later, _ = ApiKey.objects.create_key("new", expires_at=timezone.now() + timedelta(hours=1))
    assert not row.is_usable
    assert later.is_usable
    assert list(ApiKey.objects.usable()) == [later]


def test_two_keys_are_never_alike():
    keys = {ApiKey.objects.create_key("same name")[1] for _ in range(10)}
    assert len(keys) == 10
