"""Chats that were written long ago."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.e2e.stack import ROOT, Stack

WRITE = """
import json, sys
from django.contrib.auth.models import User
from inference.models import Chat, Generation
chat = Chat.objects.create(user=User.objects.get(username="grace"), title="drawn")
for text in json.load(sys.stdin):
    chat.add("user", "Go on.")
    answer = chat.add("assistant", text)
    Generation.objects.create(message=answer, user=chat.user, state="finished")
print(chat.pk)
"""


def chat_of(stack: Stack, *answers: str) -> str:
    """The path of a chat with these answers."""
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", WRITE]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=stack.environ(),
        input=json.dumps(answers),
        capture_output=True,
        text=True,
        check=True,
    )
    return f"/chats/{done.stdout.strip()}/"
