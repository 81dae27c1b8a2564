"""`make chaos`, or `python -m tests.chaos`: the counts, and exit code 1 if anything was lost."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")


def main() -> int:
    from . import plan

    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=plan.__doc__)
    # fmt: off
    parser.add_argument("--seed", type=int, default=1, help="of the plan (default: 1)")
    parser.add_argument("--generations", type=int, default=300, metavar="N", help="default: 300")
    parser.add_argument("--faults", default=",".join(plan.KINDS), metavar="KIND[,KIND]",
                        help=f"which kinds, '' for none (default: {','.join(plan.KINDS)})")
    parser.add_argument("--every", type=float, default=5.0, metavar="N",
                        help="generations to a fault (default: 5)")
    parser.add_argument("--clients", type=int, default=8, metavar="N", help="at the same time (default: 8)")
    parser.add_argument("--workers", type=int, default=2, choices=(1, 2), help="default: 2")
    parser.add_argument("--drop", type=float, default=0.1, metavar="SHARE",
                        help="of the group messages, thrown away all the time (default: 0.1)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="data directory and logs, which stay")
    # fmt: on
    args = parser.parse_args()
    kinds = [kind for kind in plan.KINDS if kind in args.faults.split(",")]
    if unknown := set(filter(None, args.faults.split(","))) - set(plan.KINDS):
        parser.error(f"no such faults: {', '.join(sorted(unknown))}")
    import django

    folder = args.keep or Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["BERTH_DATA_DIR"] = str(folder)
    django.setup()
    from .run import Run

    made = plan.make(args.seed, args.generations, kinds, args.every)
    began = time.monotonic()
    run = Run(
        made, folder, clients=args.clients, workers=args.workers, drop=args.drop,
        say=lambda line: print(line, flush=True),
    )  # fmt: skip
    tally = asyncio.run(run.run())
    print(f"\nseed {args.seed}, {time.monotonic() - began:.0f} s")
    print(tally.report(), flush=True)
    if tally.is_good and not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"logs and data: {folder}")
    return 0 if tally.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
