"""What a fence costs to put up: processor time of `true`, bare and behind each tier.

All ways are taken in turn within one run, so that a busy machine slows them alike.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

import anyio

from agent_run.errors import FenceUnavailable
from agent_run.ports.fence import Launch, Limits
from agent_run.workspace.fence import open_fence
from agent_run.workspace.fence.policy import Tier

LIMIT_MS = 60


def main(arguments: Sequence[str]) -> int:
    """Print one JSON line per way and a table; 1 when a fence costs more than the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args(arguments).rounds
    with tempfile.TemporaryDirectory() as folder:
        ways = _ways(Path(folder).resolve())
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, act in ways.items():
                took[name].append(_cost(act))
    return _tell(took)


def _ways(work: Path) -> dict[str, Callable[[], object]]:
    ways: dict[str, Callable[[], object]] = {
        "bare": partial(subprocess.run, ["/bin/true"], check=True)
    }
    for tier in get_args(Tier):
        try:
            fence = open_fence("off" if tier == "none" else "require", tier=tier)
        except FenceUnavailable as error:
            print(json.dumps({"way": tier, "skipped": str(error)}))
            continue
        limits = Limits(wall_sec=60, cpu_sec=60, memory_mb=512, processes=64, disk_mb=512)
        launch = Launch(("/bin/true",), work, {}, writable=(work,), limits=limits)
        ways[tier] = partial(anyio.run, fence.run, launch)
    return ways


def _cost(act: Callable[[], object]) -> tuple[float, float]:
    """Processor and wall milliseconds of `act`, ours and our children's."""
    before, started = _cpu(), time.perf_counter()
    act()
    return (_cpu() - before) * 1000, (time.perf_counter() - started) * 1000


def _cpu() -> float:
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        total += used.ru_utime + used.ru_stime
    return total


def _tell(took: dict[str, list[tuple[float, float]]]) -> int:
    middle = {
        name: tuple(statistics.median(each[place] for each in costs) for place in (0, 1))
        for name, costs in took.items()
    }
    bare = middle["bare"][0]
    for name, (cpu, wall) in middle.items():
        row = {"way": name, "cpu_ms": round(cpu, 1), "wall_ms": round(wall, 1)}
        print(json.dumps(row | {"over_bare_ms": round(cpu - bare, 1)}))
    print(f"\n{'way':<12}{'cpu ms':>8}{'wall ms':>9}{'over bare':>11}")
    for name, (cpu, wall) in middle.items():
        print(f"{name:<12}{cpu:>8.1f}{wall:>9.1f}{cpu - bare:>11.1f}")
    worst = max(cpu - bare for cpu, _wall in middle.values())
    print(f"\nlimit {LIMIT_MS} ms over bare, worst {worst:.1f} ms")
    return int(worst > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
