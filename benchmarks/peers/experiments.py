"""What the four experiments are: the same numbers and the same row for everybody.

Scripts for peers run in environments of their own, so this needs nothing but Python.

- E1: of 30 parallel workers one fails, and the run is resumed. How many healthy siblings
  run again? Early: it fails while they work. Late: it fails when they are done.
- E2: two processes execute the same task at the same instant. How often does it run twice?
- E3: eight agents share a budget of 1,000 tokens, and each answer costs 400. How much is
  spent beyond it, and how many answers are paid for and thrown away?
- E4: a step returns data that breaks its own schema. How much of it is stored?
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

WORKERS = 30
BROKEN = 7
EARLY, LATE, WORK = 0.01, 0.5, 0.2
"""Seconds after which the broken worker fails, early or late, and that a healthy one takes."""
ROUNDS = 20
AGENTS, LIMIT, ANSWER = 8, 1_000, 400


def row(peer: str, experiment: str, what: str, *, bad: int, of: int) -> dict[str, object]:
    """Return one result; nothing bad is what everybody wants."""
    return {"peer": peer, "experiment": experiment, "what": what, "bad": bad, "of": of}


def siblings_row(peer: str, when: str, before: Counter[str], after: Counter[str]) -> object:
    """Return how many workers other than the broken one ran again."""
    again = sum(after[name] > before[name] for name in after if name != f"w{BROKEN}")
    what = f"healthy siblings run again ({when} failure)"
    return row(peer, "E1", what, bad=again, of=WORKERS - 1)


def doubles_row(peer: str, runs: Counter[str]) -> object:
    """Return how many of the tasks ran more than once."""
    doubles = sum(count > 1 for count in runs.values())
    return row(peer, "E2", "tasks run by both processes", bad=doubles, of=ROUNDS)


def budget_rows(peer: str, *, spent: int, paid: int, used: int) -> list[object]:
    """Return what was spent beyond the limit, and which answers were paid in vain."""
    beyond = max(0, spent - LIMIT)
    return [
        row(peer, "E3", "tokens spent beyond the limit", bad=beyond, of=LIMIT),
        row(peer, "E3", "answers paid for and thrown away", bad=paid - used, of=paid),
    ]


def invalid_row(peer: str, *, stored: int) -> object:
    """Return how many invalid payloads were written down."""
    return row(peer, "E4", "invalid payloads stored", bad=stored, of=1)


def note(file: Path, name: str) -> None:
    """Add a line that no other process can tear."""
    with file.open("ab", buffering=0) as out:
        out.write(f"{name}\n".encode())


def noted(file: Path) -> Counter[str]:
    """Return how often each name was noted."""
    return Counter(file.read_text().split()) if file.exists() else Counter()


def at_one_instant(folder: Path, number: int, name: str) -> None:
    """Return in both processes at the same moment: when each has seen that the other came."""
    (folder / f"{name}-{number}.here").touch()
    other = folder / f"{name}-{1 - number}.here"
    until = time.monotonic() + 30
    while not other.exists():
        if time.monotonic() > until:
            msg = f"the other process never came to {name!r}"
            raise TimeoutError(msg)


def two_processes(script: str, folder: Path) -> None:
    """Run `script` twice at once, each with the folder and its own number."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen([sys.executable, script, "both", str(folder), str(n)], env=environment)
        for n in (0, 1)
    ]
    codes = [process.wait(120) for process in started]
    if any(codes):
        msg = f"{Path(script).name} ended with {codes} where two processes met"
        raise RuntimeError(msg)


def told(rows: Iterable[object]) -> None:
    """Print each row as one line of JSON."""
    for one in rows:
        print(json.dumps(one), flush=True)


def main(
    script: str, experiments: Callable[[], Iterable[object]], both: Callable[[Path, int], None]
) -> int:
    """Run all experiments, or be one of the two processes of the second."""
    if sys.argv[1:2] == ["both"]:
        both(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        told(experiments())
    return 0
