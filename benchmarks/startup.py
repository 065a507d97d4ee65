"""What it costs to start: CPU of whole processes, as multiples of `python -c pass`."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROUNDS = 15
MANIFEST = "task_id: task-{number}\nobjective: Add backoff to the sync worker\n"


def main(arguments: Sequence[str]) -> int:
    """Print CPU milliseconds, lowest and middle of all rounds, and the ratio to Python."""
    rounds = int(arguments[0]) if arguments else ROUNDS
    tool = str(Path(sys.executable).parent / "agent-run")
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import pydantic": [sys.executable, "-c", "from pydantic import BaseModel"],
        "agent-run --version": [tool, "--version"],
        "agent-run --help": [tool, "--help"],
        "agent-run claim --help": [tool, "claim", "--help"],
        "agent-run status --json": [tool, "status", "--json"],
    }
    with tempfile.TemporaryDirectory() as folder:
        _small_ledger(tool, Path(folder))
        _measured(commands, Path(folder), 1)
        taken = _measured(commands, Path(folder), rounds)
    bare = min(taken["python -c pass"])
    print(f"{'command':26} {'lowest':>8} {'middle':>8} {'x bare':>7}")
    for name, times in taken.items():
        lowest, middle = min(times), sorted(times)[len(times) // 2]
        print(f"{name:26} {lowest:8.1f} {middle:8.1f} {lowest / bare:7.1f}")
    for name, times in taken.items():
        row = {"topic": "startup", "command": name, "cpu_ms": round(min(times), 1)}
        print(json.dumps(row | {"ratio": round(min(times) / bare, 2)}))
    return 0


def _small_ledger(tool: str, folder: Path) -> None:
    (folder / "agent-run.toml").write_text("")
    for number in range(10):
        (folder / f"{number}.yaml").write_text(MANIFEST.format(number=number))
    files = [f"{number}.yaml" for number in range(10)]
    subprocess.run(
        [tool, "post", *files, "--run", "small"], cwd=folder, check=True, capture_output=True
    )


def _measured(
    commands: Mapping[str, list[str]], folder: Path, rounds: int
) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        # Round by round, so that a busy neighbour slows all of them alike.
        for name, command in commands.items():
            before = _children()
            subprocess.run(
                command, cwd=folder, check=True, capture_output=True, env=_clean(folder)
            )
            taken[name].append(_children() - before)
    return taken


def _clean(folder: Path) -> dict[str, str]:
    """Return an environment in which compiled modules are kept, as an installation does."""
    kept = {key: value for key, value in os.environ.items() if "AGENT_RUN" not in key}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1_000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
