"""A chat as a file."""

from __future__ import annotations

import json

import pytest

from inference.models import Chat

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(chat: Chat, generation) -> Chat:
    """With an answer that has two versions, of which the second is read."""
    generation.state, generation.model, generation.completion_tokens = "finished", "smol", 7
    generation.save()
    question = generation.message.parent
    generation.message.content = "Old answer"
    generation.message.save()
    chat.add("assistant", "New *answer*", after=question)
    chat.system_prompt, chat.temperature = "Be brief.", 0.5
    chat.save()
    return chat


def test_markdown_has_what_is_read(as_ada, told):
    reply = as_ada.get(f"/chats/{told.pk}/chat.md")
    assert reply["Content-Type"] == "text/markdown; charset=utf-8"
    assert reply["Content-Disposition"] == 'attachment; filename="Boats.md"'
    parts = [
        "# Boats",
        "## System prompt",
        "Be brief.",
        "## You",
        "Tell me of boats",
        "## Answer",
        "New *answer*",
    ]
    assert reply.text == "\n\n".join(parts) + "\n"


def test_json_has_all_versions_settings_and_times(as_ada, told, generation):
    reply = as_ada.get(f"/chats/{told.pk}/chat.json")
    assert reply["Content-Type"] == "application/json; charset=utf-8"
    assert reply["Content-Disposition"] == 'attachment; filename="Boats.json"'
    found = json.loads(reply.content)
    question, old, new = found["messages"]
    assert [m["content"] for m in (old, new)] == ["Old answer", "New *answer*"]
    assert old["parent"] == new["parent"] == question["id"]
    assert found["reads"] == [question["id"], new["id"]]
    assert found["settings"]["temperature"] == 0.5
    assert found["settings"]["seed"] is None
    [written] = old["generations"]
    assert (written["id"], written["model"], written["completion_tokens"]) == (str(generation.pk), "smol", 7)
    assert all(each["created_at"] for each in (found, question, old, new, written))


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ('a/b\\c:"d"\r\nx', 'filename="a b c d x.md"'),
        ("Über Boote", "filename*=utf-8''%C3%9Cber%20Boote.md"),
        ("...", 'filename="chat {pk}.md"'),
        ("x" * 200, f'filename="{"x" * 100}.md"'),
        ("\U0001f642" * 100, f"filename*=utf-8''{'%F0%9F%99%82' * 50}.md"),
    ],
)
def test_a_title_makes_a_file_name_that_every_system_takes(as_ada, chat, title, name):
    Chat.objects.filter(pk=chat.pk).update(title=title)
    reply = as_ada.get(f"/chats/{chat.pk}/chat.md")
    assert reply["Content-Disposition"] == f"attachment; {name.format(pk=chat.pk)}"
