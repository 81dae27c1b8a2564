"""A chat template is a program out of a file that anybody may have made."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from inference.messages import Failed, Job
from inference.worker import chat_template
from inference.worker.chat_template import ChatTemplate, TemplateFailure
from inference.worker.intake import Intake
from inference.worker.reception import Reception

WITHOUT_END = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
HELLO = [{"role": "user", "content": "hello"}]


def failure(source: str) -> str:
    """Why a template is refused, at its start or for a message."""
    with pytest.raises(TemplateFailure) as caught:
        ChatTemplate(source, bos="", eos="").render(HELLO)
    return str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        WITHOUT_END,
        "{% macro m(n) %}{{ m(n + 1) }}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
        "{{ 10 ** (10 ** 9) }}",  # computed as it is compiled
        "{{ 'x' * 10 ** 10 }}",
        "{% set all = namespace(s='x') %}{% for i in range(64) %}{% set all.s = all.s ~ all.s %}{% endfor %}",
        "{{ '%09999999999d' % 1 }}",
        "{{ 'x'.ljust(10 ** 10) }}",
        "{{ '{:>9999999999}'.format(1) }}",
        "{{ 'x' | center(9999999999) }}",
        "{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% if 1 %}" * 500 + "{% endif %}" * 500,
        "{% for a in b %}" * 50 + "{% endfor %}" * 50,
        "{{ 1 // 0 }}",
        "{{ raise_exception('x' * 1000000) }}",
        "{% if %}",
        "x" * (chat_template.LONGEST_SOURCE + 1),
    ],
)
def test_a_hostile_template_is_refused_in_one_short_line(source: str) -> None:
    why = failure(source)
    assert "template" in why
    assert len(why) < 700


@pytest.mark.parametrize(
    "source",
    [
        "{{ [].__class__ }}",
        "{{ raise_exception.__globals__ }}",
        "{{ messages[0] | attr('__class__') }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages | map(attribute='__class__') | join }}",
    ],
)
def test_a_template_sees_nothing_of_the_python_under_it(source: str) -> None:
    try:
        shown = ChatTemplate(source, bos="", eos="").render(HELLO)
    except TemplateFailure:
        return
    assert shown == ""


def test_what_a_template_did_to_one_message_is_nothing_to_the_next() -> None:
    template = ChatTemplate(
        "{% if messages[0]['content'] == 'loop' %}" + WITHOUT_END + "{% endif %}{{ messages[0]['content'] }}",
        bos="",
        eos="",
    )
    assert template.render(HELLO) == "hello"
    with pytest.raises(TemplateFailure, match="takes more than 1 s"):
        template.render([{"role": "user", "content": "loop"}])
    assert template.render(HELLO) == "hello"


def test_a_prompt_may_be_as_long_as_its_messages_and_more() -> None:
    template = ChatTemplate("{{ messages[0]['content'] * 2 }}", bos="", eos="")
    assert len(template.render([{"role": "user", "content": "x" * 5_000_000}])) == 10_000_000
    with pytest.raises(TemplateFailure, match="a prompt of more than"):
        ChatTemplate("{{ messages[0]['content'] * 5 }}", bos="", eos="").render(
            [{"role": "user", "content": "x" * 5_000_000}]
        )


def test_its_process_ends_with_it() -> None:
    template = ChatTemplate("", bos="", eos="")
    process = template._process
    assert process is not None
    del template
    process._connection.close()
    assert process._process.wait(30) == 0


async def test_the_worker_goes_on_while_a_template_runs() -> None:
    intake = Intake(model=None, template=ChatTemplate(WITHOUT_END, bos="", eos=""), n_ctx_seq=64)  # type: ignore[arg-type]
    lease: Any = None  # which only a job of a dead worker needs
    job = Job("0" * 32, "apply_template", {"messages": HELLO}, "")
    considered = asyncio.create_task(Reception(intake, lease).consider(job))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not considered.done()
    ((event, sequence),) = await considered
    assert isinstance(event, Failed)
    assert (event.status, sequence) == (400, None)
    assert "takes more than 1 s" in event.message
