"""Speed through the whole product against llama-server: same model, same machine, alternating.

    python -m tests.bench --peer PATH      PATH is a llama-server built from the same llama.cpp sources
    python -m tests.bench                  without a peer: the product's own figures only
    python -m tests.bench --only parking   what parking costs, in the engine alone
    python -m tests.bench --only exactness whether parks change a token (minutes; only when asked for)
    python -m tests.bench --only watching  what twenty open monitors cost (likewise)
    python -m tests.bench --only painting  how long the chat stands still while a long answer comes (likewise)
    python -m tests.bench --only moments   a part of it: when a long chat is opened, and at a click on Stop

Prints a table of medians and ratios. It asserts nothing: a shared machine decides too much.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable

from inference.options import Options
from inference.serve.model_files import resolve

from . import client, exactness, moments, painting, parking, servers, watching

PROMPTS = [
    "Once upon a time there was a brave knight who",
    "The quick brown fox jumps over the lazy dog and",
    "In a small village by the sea there lived a fisherman who",
    "Every morning before sunrise the old baker would",
    "The train left the station an hour late because",
    "Nobody in the office had ever seen a printer that",
    "Under the bridge, where the water was quiet, there",
    "She opened the letter slowly, knowing that",
]
LONG_PROMPT = " ".join([PROMPTS[2]] * 58)  # about 700 tokens


def throughput(port: int, n_streams: int, n_tokens: int) -> float:
    """Tokens per second of all streams together, from the first request to the last token."""
    streams = [client.Stream(port, client.completion(PROMPTS[i], n_tokens)) for i in range(n_streams)]
    client.run(streams)
    for stream in streams:
        stream.check(n_tokens)
    start = min(s.sent_at for s in streams)
    end = max(s.token_times()[-1] for s in streams)
    return n_streams * n_tokens / (end - start)


def ttft(port: int) -> float:
    """Milliseconds to the first token of a lone short prompt; the median of 8."""
    streams = [client.run([client.Stream(port, client.completion(p, 2))])[0] for p in PROMPTS]
    return 1e3 * statistics.median(s.ttft for s in streams)


def next_turn(port: int, cache: bool = True) -> float:
    """Milliseconds to the first token of a prompt that begins with about 700 tokens that were just asked."""
    said = f"{time.monotonic_ns()}. {LONG_PROMPT}"  # which nobody has asked before
    for question in (said, f"{said}. {PROMPTS[0]}"):
        [stream] = client.run([client.Stream(port, client.completion(question, 2) | {"cache_prompt": cache})])
    return 1e3 * stream.ttft


def neighbour_gap(port: int) -> float:
    """Milliseconds: a decoding stream's worst gap while a prompt of about 700 tokens is processed."""
    neighbour = client.Stream(port, client.completion(PROMPTS[0], 300))
    thread = threading.Thread(target=client.run, args=([neighbour],))
    thread.start()
    while not neighbour.reads:
        time.sleep(0.01)
    time.sleep(0.3)
    client.run([client.Stream(port, client.completion(LONG_PROMPT, 2))])
    thread.join()
    return 1e3 * neighbour.worst_gap()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--peer", help="a llama-server binary built from the same llama.cpp sources")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", help="a part of the names of the measurements to run")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers are stopped, too
    measurements: list[Measurement] = [
        *((f"tokens/s, {n} streams", lambda port, n=n: throughput(port, n, args.tokens)) for n in (1, 4, 8)),
        ("time to first token, ms", ttft),
        ("the next turn's first token, ms", next_turn),
        ("the same, with nothing kept, ms", lambda port: next_turn(port, cache=False)),
        ("neighbour's worst gap, ms", neighbour_gap),
    ]
    if not args.only or "parking" in args.only:
        parking.report(str(resolve(Options.from_env())), args.threads, args.rounds)
    if args.only and "exactness" in args.only:
        exactness.report(str(resolve(Options.from_env())), args.threads)
    if args.only and "watching" in args.only:
        watching.report(str(resolve(Options.from_env())), args.threads, args.rounds)
    if args.only and "painting" in args.only:
        painting.report(args.rounds)
    if args.only and args.only in ("painting", "moments"):
        moments.report(args.rounds)
    if args.only:
        measurements = [m for m in measurements if args.only in m[0]]
    if not measurements:
        return
    with servers.berth(args.threads) as ours:
        if not args.peer:
            report(measurements, {"berth": ours}, args.rounds)
            return
        with servers.peer(args.peer, args.threads) as theirs:
            report(measurements, {"berth": ours, "llama-server": theirs}, args.rounds)


Measurement = tuple[str, Callable[[int], float]]


def report(measurements: list[Measurement], ports: dict[str, int], rounds: int) -> None:
    for port in ports.values():
        throughput(port, 1, 16)  # warm
    for name, measure in measurements:
        figures: dict[str, list[float]] = {server: [] for server in ports}
        for i in range(rounds):
            # Alternating, and each first as often as the other, so that a slow minute hits both.
            for server, port in sorted(ports.items(), reverse=bool(i % 2)):
                figures[server].append(measure(port))
        medians = {server: statistics.median(values) for server, values in figures.items()}
        line = "  ".join(f"{server} {median:8.1f}" for server, median in medians.items())
        ratio = ""
        if len(medians) == 2:
            pairs = [a / b for a, b in zip(*figures.values(), strict=True)]
            ratio = f"  ratio {statistics.median(pairs):.3f} ({min(pairs):.3f}..{max(pairs):.3f})"
        print(f"{name:34s} {line}{ratio}", flush=True)


if __name__ == "__main__":
    main()
