"""The admin's lists over a table of millions of generations, against the same pages over ten thousand.

    python -m tests.bench.admin_lists [--rows 2000000] [--keep FOLDER]

Fills a scratch SQLite database twice and prints each page's time and their ratio. It asserts nothing; that
every list keeps to an index is what tests/admin/test_plans.py reads from the query plans.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

FEW = 10_000
ROUNDS = 7
SECONDS = 3  # between two generations
PEOPLE, KEYS = 20, 20  # each has more than a page of ten thousand
PARKED = 4  # one generation of so many has been parked once

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})"
TIME = "strftime('%Y-%m-%d %H:%M:%f', '2025-01-01', (i * {step}) || ' seconds', {offset})"
GENERATIONS = f"""
{NUMBERS}
INSERT INTO inference_generation (id, state, api, model, user_id, api_key_id, message_id, stream, priority,
    prompt_tokens, completion_tokens, parks, parked_s, park_cause, park_kind, ttft_s, finish_reason, error,
    worker, created_at, started_at, finished_at)
SELECT lower(hex(randomblob(16))),
    CASE WHEN i % 100 = 7 THEN 'failed' WHEN i % 50 = 3 THEN 'cancelled' ELSE 'finished' END,
    CASE i % 3 WHEN 0 THEN 'chat' WHEN 1 THEN '/v1/chat/completions' ELSE '/completion' END,
    CASE i % 5 WHEN 0 THEN 'large' ELSE 'small' END,
    CASE WHEN i % 3 = 0 THEN 1 + abs(random()) % {PEOPLE} END,
    CASE WHEN i % 3 > 0 THEN 1 + abs(random()) % {KEYS} END,
    NULL, 1, CASE i % 20 WHEN 0 THEN 1 WHEN 1 THEN -1 ELSE 0 END, 100, 200,
    i % {PARKED} = 0, 0.5,
    CASE WHEN i % {PARKED} THEN '' WHEN i % 8 = 0 THEN 'pressure'
        WHEN i % 40 = 4 THEN 'hand' ELSE 'rotation' END,
    CASE WHEN i % {PARKED} THEN '' WHEN i % 8 = 0 THEN 'swap' ELSE 'recompute' END,
    0.4, CASE WHEN i % 100 = 7 THEN '' ELSE 'stop' END, '', 'w' || (i % 4),
    {TIME.format(step=SECONDS, offset="'0 seconds'")}, {TIME.format(step=SECONDS, offset="'0.1 seconds'")},
    {TIME.format(step=SECONDS, offset="'9 seconds'")}
FROM n
"""
PARKS = """
INSERT INTO inference_preemption (generation_id, slot, cause, kind, cells, bytes, parked_at, resumed_at,
    waited_s)
SELECT id, 1, park_cause, park_kind, 150, 3000000, started_at, finished_at, 0.5
FROM inference_generation WHERE parks = 1 ORDER BY created_at
"""
PAGES = {
    "the list": ("generation", {}),
    "its last page": ("generation", {"p": "100"}),
    "failed": ("generation", {"state__exact": "failed"}),
    "failed, last page": ("generation", {"state__exact": "failed", "p": "40"}),
    "none in a state": ("generation", {"state__exact": "parked"}),
    "a worker's": ("generation", {"worker": "w1"}),
    "a model's": ("generation", {"model": "large"}),
    "a key's": ("generation", {"api_key": "7"}),
    "a person's": ("generation", {"user__id__exact": "7"}),
    "high priority": ("generation", {"priority": "high"}),
    "parked by hand": ("generation", {"park_cause": "hand"}),
    "parked by recompute": ("generation", {"park_kind": "recompute"}),
    "a day": ("generation", {"created_at__year": "2025", "created_at__month": "1", "created_at__day": "1"}),
    "a day's failed": (
        "generation",
        {"created_at__year": "2025", "created_at__month": "1", "created_at__day": "1",
         "state__exact": "failed"},
    ),
    "searched by a name": ("generation", {"q": "person7"}),
    "searched by an id": ("generation", {"q": "ab12"}),
    "searched by a key": ("generation", {"q": "key 17"}),
    "searched in vain": ("generation", {"q": "nobody of this name"}),
    "parks": ("preemption", {}),
    "parks, a cause": ("preemption", {"cause__exact": "hand"}),
    "parks, a kind": ("preemption", {"kind__exact": "swap"}),
    "parks, open": ("preemption", {"outcome": "open"}),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.admin_lists")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--keep", type=Path, help="a folder for the database, which stays there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        for name in ("REDIS_URL", "DATABASE_URL", "BERTH_OPTIONS"):
            os.environ.pop(name, None)
        os.environ["BERTH_DATA_DIR"] = str(folder)
        os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        client = _signed_in()
        _fill(1, FEW)
        few = _measure(client)
        begun = time.perf_counter()
        _fill(FEW + 1, args.rows)
        size = (folder / "db.sqlite3").stat().st_size / 2**30
        print(f"{args.rows:,} generations: {size:.1f} GiB, filled in {time.perf_counter() - begun:.0f} s")
        many = _measure(client)
    print(f"{'page':24} {FEW:>10,} {args.rows:>12,}  ratio")
    for name in PAGES:
        print(f"{name:24} {few[name]:7.1f} ms {many[name]:9.1f} ms {many[name] / few[name]:6.2f}")


def _signed_in() -> Any:
    from django.contrib.auth.models import User
    from django.test import Client

    from inference.models import ApiKey

    if not User.objects.exists():
        User.objects.bulk_create(User(username=f"person{i}", password="!") for i in range(PEOPLE))
        ApiKey.objects.bulk_create(
            ApiKey(name=f"key {i}", prefix=f"sk-{i}", hash=f"{i:064}") for i in range(KEYS)
        )
        User.objects.create_superuser("root")
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.get(username="root"))
    return client


def _fill(first: int, last: int) -> None:
    """The generations numbered so and their parks. Indexes are made anew afterwards: that is faster."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode = OFF")
        cursor.execute("PRAGMA synchronous = OFF")
        cursor.execute("PRAGMA cache_size = -2000000")
        cursor.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL "
            "AND tbl_name IN ('inference_generation', 'inference_preemption')"
        )
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f'DROP INDEX "{name}"')
        cursor.execute("DELETE FROM inference_preemption")
        cursor.execute(GENERATIONS.format(first=first, last=last))
        cursor.execute(PARKS)
        for _, sql in indexes:
            cursor.execute(sql)
        cursor.execute("PRAGMA journal_mode = WAL")


def _measure(client: Any) -> dict[str, float]:
    """Milliseconds of each page; the best of ROUNDS, since what else runs here only adds."""
    times = {}
    for name, (model, query) in PAGES.items():
        taken = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            reply = client.get(f"/admin/inference/{model}/", query)
            taken.append(1e3 * (time.perf_counter() - begun))
            assert reply.status_code in (200, 302), (name, reply.status_code)
        times[name] = min(taken)
    return times


if __name__ == "__main__":
    main()
