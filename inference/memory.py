"""How much memory there is."""

from __future__ import annotations

from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def free() -> int | None:
    """Bytes that this process could still get, by the machine's count and its cgroup's; None if unknown."""
    counts = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                counts.append(int(line.split()[1]) << 10)
    except OSError:
        return None
    own = Path("/proc/self/cgroup").read_text().rpartition("0::/")[2].splitlines()
    places = [CGROUPS / own[0] if own else CGROUPS, CGROUPS]
    files = [(p / "memory.max", p / "memory.current", p / "memory.stat") for p in places]
    old = CGROUPS / "memory"
    files.append((old / "memory.limit_in_bytes", old / "memory.usage_in_bytes", old / "memory.stat"))
    for limit, use, stat in files:
        try:
            most, used = limit.read_text().strip(), int(use.read_text())
            facts = dict(line.split() for line in stat.read_text().splitlines())
        except (OSError, ValueError):
            continue
        if most != "max":
            cache = int(facts.get("inactive_file", 0)) + int(facts.get("active_file", 0))
            counts.append(max(0, int(most) - used + cache))
    return min(counts, default=None)
