"""manage.py simulate: the production scheduler under a virtual clock."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from inference.engine import scheduler
from inference.engine.scheduler import Plan, Pool
from inference.simulator.chats import Chat
from inference.simulator.run import Scenario, run
from inference.simulator.timeline import svg


def simulate(*arguments: str) -> list[list[str]]:
    """The table's rows, as words."""
    out = StringIO()
    call_command("simulate", "--chats", "60", *arguments, stdout=out)
    return [line.split() for line in out.getvalue().splitlines()[3:]]


def test_it_prints_a_row_for_each_combination() -> None:
    rows = simulate("--workload", "short,heavy", "--rotate-after", "0,2", "--slots", "2,4", "--cells", "512")
    assert [row[:4] for row in rows] == [
        [workload, "512", slots, rotate]
        for workload in ("short", "heavy")
        for slots in ("2", "4")
        for rotate in ("0", "2")
    ]


def test_a_row_names_what_of_the_policy_is_not_the_default() -> None:
    rows = simulate("--workload", "short", "--return-margin", "1/8,1/4", "--level", "60,30")
    assert [row[16:] for row in rows] == [
        [],
        ["level_s", "30"],
        ["return_margin", "0.25"],
        ["return_margin", "0.25", "level_s", "30"],
    ]


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others() -> None:
    first = simulate("--workload", "heavy", "--seed", "7")
    assert simulate("--workload", "heavy", "--seed", "7") == first
    assert simulate("--workload", "heavy", "--seed", "8") != first


def test_it_runs_the_production_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Plan[Chat]] = []
    plan = scheduler.plan

    def watched(pool: Pool[Chat]) -> Plan[Chat]:
        plans.append(plan(pool))
        return plans[-1]

    monkeypatch.setattr(scheduler, "plan", watched)
    result = run(Scenario("heavy", chats=60, cells=512))
    assert sum(len(plan.admit) + len(plan.park_queued) for plan in plans) >= 60
    assert {chat.outcome for chat in result.chats} == {"finished"}


@pytest.mark.parametrize("workload", ["short", "heavy", "bursty", "agents"])
def test_every_chat_gets_all_its_tokens_in_every_workload(workload: str) -> None:
    result = run(Scenario(workload, chats=80, cells=1024, load=1.5))
    assert all(chat.tokens == chat.prompt + chat.answer for chat in result.chats)
    assert result.machine.ram_used == 0
    assert result.makespan >= max(chat.arrived for chat in result.chats)


def test_without_parking_nobody_is_parked_and_nobody_fails() -> None:
    result = run(Scenario("heavy", chats=80, cells=512, parking=False))
    assert (result.parks_per_chat, result.failed) == (0.0, 0)


def test_with_no_ram_to_park_in_chats_fail() -> None:
    result = run(Scenario("heavy", chats=80, cells=256, load=3.0, ram=0))
    assert result.failed > 0
    assert result.parks_per_chat == 0.0


def test_a_small_ram_shows_as_tokens_that_are_computed_again() -> None:
    scenario = Scenario("heavy", chats=80, cells=512, load=1.5)
    assert run(scenario).recomputed_share == 0.0
    assert run(replace(scenario, ram=2_000_000)).recomputed_share > 0.0


def test_priorities_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    (_, by_priority) = simulate("--workload", "heavy", "--priorities", "--load", "1.2")
    assert {"high", "normal", "low"} <= set(by_priority)


def test_the_timeline_shows_each_stay_in_its_slot(tmp_path) -> None:
    file = tmp_path / "slots.svg"
    simulate("--workload", "heavy", "--cells", "512", "--svg", str(file), "--svg-seconds", "100000")
    stays = run(Scenario("heavy", chats=60, cells=512)).machine.stays
    titles = [e.text or "" for e in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(stays)
    assert {title.split(":")[0] for title in titles} == {f"chat {i}" for i in range(60)}


def test_a_timeline_of_a_time_when_nothing_happened_is_empty() -> None:
    drawn = svg(run(Scenario("short", chats=3)), start=1e6, seconds=10)
    assert "<title>" not in drawn
    ElementTree.fromstring(drawn)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--chats", "0"], "argument --chats: 0 is not between 1 and 1000000"),
        (["--chats", "many"], "argument --chats: 'many' is not a whole number"),
        (["--workload", "busy"], "there is no workload 'busy': short, heavy, bursty, agents or all"),
        (["--cells", "512,x"], "argument --cells: 'x' is not a whole number"),
        (["--slots", "0"], "argument --slots: 0 is not between 1 and 256"),
        (["--rotate-after", "nan"], "argument --rotate-after: nan is not between 0 and 1e+06"),
        (["--rotate-after", "soon"], "argument --rotate-after: 'soon' is not a number"),
        (["--return-margin", "1"], "argument --return-margin: '1' is not a share of the pool from 0 to 0.9"),
        (["--return-margin", "1/8,1/0"], "argument --return-margin: '1/0' is not a share of the pool"),
        (["--join-margin=-1/8"], "argument --join-margin: '-1/8' is not a share of the pool"),
        (["--join-margin", "some"], "argument --join-margin: 'some' is not a share of the pool"),
        (["--load", "0"], "argument --load: 0 is not between 0.01 and 100"),
        (["--preempt-ram", "-2"], "argument --preempt-ram: -2 is not between -1 and 2147483647"),
        (["--svg", "x.svg"], "--svg draws one simulation, and these options make 4"),
        (["--svg", "/nowhere/x.svg"], "argument --svg: there is no folder /nowhere"),
        (["--svg", "/tmp"], "argument --svg: '/tmp' is a folder; give the name of a file"),
        (["--svg", ""], "argument --svg: '' is a folder"),
        (
            ["--workload", "short", "--svg", "/dev/null", "--svg-start", "1e9"],
            "--svg-start: the simulation is over after",
        ),
    ],
)
def test_a_bad_option_is_told_in_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError) as raised:
        simulate(*arguments)
    assert message in str(raised.value)
