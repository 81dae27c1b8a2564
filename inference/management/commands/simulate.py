"""manage.py simulate: what the scheduling policy does to many chats, under a virtual clock."""

from __future__ import annotations

import math
import os
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference.engine.scheduler import DEFAULT
from inference.simulator.run import Result, Scenario, percentile, run
from inference.simulator.timeline import svg
from inference.simulator.workload import CELLS, SIZES

COLUMNS = (
    ("workload", 8), ("cells", 6), ("slots", 5), ("rotate", 6), ("ram", 6), ("longest", 7),
    ("p99", 7), ("p50", 7), ("first p50", 9), ("p99", 7), ("makespan", 8), ("unparked", 8),
    ("parks", 6), ("recomputed", 10), ("failed", 6),
)  # fmt: skip
POLICY = {name: name for name in ("return_margin", "join_margin", "turn_cells", "recompute_turns")}
POLICY["level_s"] = "level"  # a field of the policy, and the option that sets it
LEGEND = (
    "Seconds. Of each chat its longest wait in line, and the time from its arrival to its first token; the\n"
    "makespan, and in relation to a pool that fits all; parks per chat; share of tokens computed again."
)


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ArgumentTypeError(f"'{text}' is not a whole number") from None
        if not low <= value <= high:
            raise ArgumentTypeError(f"{value} is not between {low} and {high}")
        return value

    return read


def _number(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ArgumentTypeError(f"'{text}' is not a number") from None
        if not (math.isfinite(value) and low <= value <= high):
            raise ArgumentTypeError(f"{text} is not between {low:g} and {high:g}")
        return value

    return read


def _several(read: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    return lambda text: [read(part.strip()) for part in text.split(",")]


def _workload(text: str) -> list[str]:
    names = list(SIZES) if text == "all" else [part.strip() for part in text.split(",")]
    for name in names:
        if name not in SIZES:
            raise ArgumentTypeError(f"there is no workload '{name}': {', '.join(SIZES)} or all")
    return names


def _share(text: str) -> float:
    """A number or a fraction, from 0 to 0.9."""
    over, slash, under = text.partition("/")
    try:
        value = float(over) / (float(under) if slash else 1)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not 0 <= value <= 0.9:
        raise ArgumentTypeError(f"'{text}' is not a share of the pool from 0 to 0.9, such as 1/8 or 0.125")
    return value


def _file(text: str) -> Path:
    """Where a file can be written: better known now than when the simulation is over."""
    path = Path(text)
    if path.is_dir():
        raise ArgumentTypeError(f"'{text}' is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise ArgumentTypeError(f"there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ArgumentTypeError(f"'{text}' cannot be written: no permission")
    return path


class Command(BaseCommand):
    """Options that take several values, separated by commas, are simulated in each combination."""

    help = (
        "Drive the production scheduler with a virtual clock, and print what the chats had to wait. "
        "Options that take several values (a,b,c) are simulated in each combination, one line each."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        policy, scenario = DEFAULT, Scenario()
        add = parser.add_argument
        # fmt: off
        add("--chats", type=_whole(1, 1_000_000), default=scenario.chats, metavar="N", help="default: 10000")
        add("--workload", type=_workload, default=list(SIZES), metavar="NAMES",
            help=f"several of {', '.join(SIZES)}; default: all")
        add("--cells", type=_several(_whole(64, 2**31 - 1)), metavar="NUMBERS",
            help="pool sizes; default: " + ", ".join(f"{n} for {name}" for name, n in CELLS.items()))
        add("--slots", type=_several(_whole(1, 256)), default=[scenario.slots], metavar="NUMBERS",
            help="several; default: 4")
        add("--load", type=_number(0.01, 100), default=scenario.load, metavar="X",
            help="work that arrives in relation to what the slots can do; default: 0.9")
        add("--rotate-after", type=_several(_number(0, 1e6)), default=[scenario.rotate_after],
            metavar="SECONDS", help="several; 0 is no rotation; default: 2")
        add("--return-margin", type=_several(_share), default=[policy.return_margin], metavar="SHARES",
            help="several; of the pool, left free for residents when a parked chat returns; default: 1/8")
        add("--join-margin", type=_several(_share), default=[policy.join_margin], metavar="SHARES",
            help="several; of the pool, left free for residents when a new chat is admitted; default: 1/64")
        add("--level", type=_several(_number(0.1, 1e6)), default=[policy.level_s], metavar="SECONDS",
            help=f"several; waiting that a level of priority is worth; default: {policy.level_s:g}")
        add("--turn-cells", type=_several(_whole(1, 2**31 - 1)), default=[policy.turn_cells],
            metavar="NUMBERS",
            help=f"several; cells for which a turn lasts one --rotate-after; default: {policy.turn_cells}")
        add("--recompute-turns", type=_several(_whole(1, 10**6)), default=[policy.recompute_turns],
            metavar="NUMBERS",
            help=f"several; how much longer a turn is with the RAM full; default: {policy.recompute_turns}")
        add("--priorities", action="store_true", help="a tenth of the chats has high priority, a fifth low")
        add("--preempt-ram", type=_several(_whole(-1, 2**31 - 1)), default=[-1], metavar="MIB",
            help="several; host RAM for parked chats; -1: no limit (default); 0: never park, chats fail")
        add("--no-parking", action="store_true",
            help="a chat is admitted when the pool has cells for its whole answer, and nobody is parked")
        add("--seed", type=_whole(0, 2**63), default=scenario.seed, metavar="N", help="default: 1")
        add("--svg", type=_file, metavar="FILE", help="draw a timeline of the slots")
        add("--svg-start", type=_number(0, 1e9), default=0.0, metavar="SECONDS", help="default: 0")
        add("--svg-seconds", type=_number(1, 1e6), default=120.0, metavar="SECONDS", help="default: 120")
        # fmt: on

    def handle(self, *args: Any, **options: Any) -> None:
        scenarios = _scenarios(options)
        if options["svg"] and len(scenarios) > 1:
            raise CommandError(f"--svg draws one simulation, and these options make {len(scenarios)}")
        self.stdout.write(LEGEND)
        self.stdout.write("  ".join(name.rjust(width) for name, width in COLUMNS))
        for scenario in scenarios:
            result = run(scenario)
            self.stdout.write(_row(result))
            if scenario.priorities:
                self.stdout.write(_by_priority(result))
            self.stdout.flush()
        if options["svg"]:
            if options["svg_start"] >= result.makespan:
                raise CommandError(f"--svg-start: the simulation is over after {result.makespan:.1f} s")
            try:
                options["svg"].write_text(svg(result, options["svg_start"], options["svg_seconds"]), "utf-8")
            except OSError as error:
                raise CommandError(f"--svg: cannot write {options['svg']}: {error.strerror}") from None


def _scenarios(options: dict[str, Any]) -> list[Scenario]:
    """One for each combination of the options that take several values."""
    policies = [
        replace(DEFAULT, **dict(zip(POLICY, values, strict=True)))
        for values in product(*(options[option] for option in POLICY.values()))
    ]
    return [
        Scenario(
            workload=workload,
            chats=options["chats"],
            cells=cells,
            slots=slots,
            load=options["load"],
            priorities=options["priorities"],
            rotate_after=rotate_after,
            ram=ram * 2**20 if ram > 0 else ram,
            parking=not options["no_parking"],
            policy=policy,
            seed=options["seed"],
        )
        for workload in options["workload"]
        for cells, slots, policy, ram, rotate_after in product(
            options["cells"] or [CELLS[workload]],
            options["slots"],
            policies,
            options["preempt_ram"],
            options["rotate_after"],
        )
    ]


def _row(result: Result) -> str:
    s, waits, first = result.scenario, result.waits, result.first_tokens
    ram = {-1: "-", 0: "0"}.get(s.ram, str(s.ram // 2**20))
    rotate = f"{s.rotate_after:g}" if s.parking else "queue"
    times = [waits[-1], percentile(waits, 0.99), percentile(waits, 0.5)]
    times += [percentile(first, 0.5), percentile(first, 0.99)]
    values = (
        *(s.workload, s.cells, s.slots, rotate, ram),
        *(f"{seconds:.1f}" for seconds in times),
        *(f"{result.makespan:.0f}", f"{result.makespan / result.unparked:.3f}"),
        *(f"{result.parks_per_chat:.2f}", f"{100 * result.recomputed_share:.1f} %", result.failed),
    )
    row = "  ".join(str(value).rjust(width) for value, (_, width) in zip(values, COLUMNS, strict=True))
    other = [name for name in POLICY if getattr(s.policy, name) != getattr(DEFAULT, name)]
    return row + "".join(f"  {name} {getattr(s.policy, name):g}" for name in other)


def _by_priority(result: Result) -> str:
    parts = []
    for name, priority in (("high", -1), ("normal", 0), ("low", 1)):
        waits = sorted(chat.longest_wait for chat in result.chats if chat.priority == priority)
        if waits:
            p50, p99 = percentile(waits, 0.5), percentile(waits, 0.99)
            parts.append(f"{name} p50 {p50:.1f}, p99 {p99:.1f}, longest {waits[-1]:.1f}")
    return "          waits by priority: " + "; ".join(parts)
