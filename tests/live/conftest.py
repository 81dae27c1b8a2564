from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import browser, sign_in  # noqa: F401 - fixtures
from tests.e2e.stack import ROOT, Stack
from tests.engine import tiny

REAL = ROOT / "var/models/SmolLM2-135M-Instruct.Q4_1.gguf"

# What a file from anywhere may bring: harmless until a message says what it should do.
HOSTILE = """
{%- set wish = messages[-1]['content'] -%}
{%- if wish == 'loop' -%}
{%- for a in range(99999) -%}{%- for b in range(99999) -%}{%- endfor -%}{%- endfor -%}
{%- elif wish == 'double' -%}
{%- set all = namespace(s='x') -%}{%- for i in range(64) -%}{%- set all.s = all.s ~ all.s -%}{%- endfor -%}
{%- elif wish == 'escape' -%}{{ ''.__class__.__mro__ }}
{%- endif -%}
{%- for m in messages -%}{{ m['content'] }}{%- endfor -%}
"""


def hostile_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose steps are quick, and whose chat template is hostile. It is written once."""
    path = tmp_path_factory.getbasetemp() / "hostile.gguf"
    if not path.exists():
        tiny.write(path, REAL, chat_template=HOSTILE)
    return path


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The real stack with little room, on that model."""
    model = hostile_model(tmp_path_factory)
    flags: dict[str, int | str] = {"model": str(model), "ctx-size": 256, "parallel": 4, "n-predict": 8}
    stack = Stack(tmp_path_factory.mktemp("security"), **flags)
    stack.flags += ["--metrics", "--sign-up"]
    stack.start()
    yield stack
    stack.stop()
