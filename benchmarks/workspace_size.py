"""What a workspace costs as a repository grows: base, prepare, collect, judge's tree.

CPU seconds of this process and of git together, each step in a fresh folder.
`bare` is the same set of files written by a plain loop in the same run: what the file
system itself takes.
Just after many files were removed, ext4 finds new inodes slowly: compare with `bare`, or
run with `TMPDIR` on a memory file system.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from agent_run.ports.workspace import Stamp
from agent_run.workspace.trees import open_workspace

SIZES = (50, 1_000, 20_000)
STEPS = ("bare", "base", "base again", "prepare", "collect", "materialize", "promote", "sweep")
T = TypeVar("T")


def main(arguments: Sequence[str]) -> int:
    """Print one line of JSON for each size, and a table."""
    sizes = [int(one) for one in arguments] or SIZES
    rows = [_measured(size) for size in sizes]
    print(f"{'files':>8}" + "".join(f"{step:>13}" for step in STEPS))
    for row in rows:
        print(f"{row['files']:>8}" + "".join(f"{row[step]:>11.3f} s" for step in STEPS))
    return 0


def _measured(size: int) -> dict[str, float]:
    row: dict[str, float] = {"files": size}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        repo = _repository(place / "repo", size)

        def timed(step: str, work: Callable[[], T]) -> T:
            begun = _cpu()
            result = work()
            row[step] = round(_cpu() - begun, 3)
            return result

        timed("bare", lambda: _bare(repo, place / "bare"))
        trees = open_workspace(repo, place / "state")
        base = timed("base", trees.base)
        timed("base again", trees.base)
        checkout = timed("prepare", lambda: trees.prepare(base, task_id="t", claim=1))
        (checkout.path / "pkg0" / "new.py").write_text("new = True\n")
        found = timed("collect", lambda: trees.collect(checkout, allowed=("pkg0/**",)))
        timed("materialize", lambda: trees.materialize(base, found, into=place / "judge"))
        stamp = Stamp("t", datetime.now(UTC), "trace", 1, 1)
        timed("promote", lambda: trees.promote(base, found, stamp=stamp, message="x"))
        trees.discard(checkout)
        timed("sweep", trees.sweep)
    print(json.dumps(row))
    return row


def _repository(repo: Path, size: int) -> Path:
    for number in range(size):
        file = repo / f"pkg{number // 400}" / f"sub{number // 40 % 10}" / f"mod{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"def f{n}(): return {number * n}\n" for n in range(40)))
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    commit = (*who, "-c", "gc.auto=0", "commit", "-qm", "x")
    for command in (("init", "-q"), ("add", "-A"), commit, ("repack", "-adq")):
        subprocess.run(["git", "-C", str(repo), *command], check=True)
    # The file system needs a moment of its own after so many new files.
    time.sleep(0.5)
    return repo


def _bare(repo: Path, into: Path) -> None:
    for file in repo.rglob("*.py"):
        copy = into / file.relative_to(repo)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())


def _cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
