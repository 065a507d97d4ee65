"""What the whole path costs over running the same command and the same tests bare.

CPU seconds of this process and of all its children. `bare` runs the executor's command and
the verification in a plain copy of the project; `whole` posts, claims, copies, fences, scans,
judges and commits. Verification runs twice there, on the base and on the result, so the bare
run counts it twice as well. `copy` is the claim's workspace alone.

The target is less than 0.5 s of overhead with 50 files.
Just after many files were removed, ext4 finds new inodes slowly: run with `TMPDIR` on a memory
file system to see what is ours.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio

from agent_run.contract.manifest import Check, Manifest
from agent_run.desk import Desk
from agent_run.engine.execute import Ordered, execute
from agent_run.ledger.commands import Post
from agent_run.ledger.state import Status
from agent_run.wiring.opening import open_desk
from agent_run.wiring.settings import Settings
from agent_run.wiring.site import open_executor, open_site

SIZES = (50, 1_000, 20_000)
ROUNDS = 3
TARGET = 0.5
WORK = "printf 'VALUE = 2\\n' > src/value.py"
TESTS = "python3 -m unittest -q tests.test_value"
COLUMNS = ("bare", "whole", "overhead", "first", "copy")


def main(arguments: Sequence[str]) -> int:
    """Print one line of JSON for each size, and a table."""
    rows = [_measured(int(size)) for size in arguments or SIZES]
    print(f"{'files':>8}" + "".join(f"{name:>12}" for name in COLUMNS))
    for row in rows:
        print(f"{row['files']:>8}" + "".join(f"{row[name]:>10.3f} s" for name in COLUMNS))
    print(f"target: overhead below {TARGET} s with {SIZES[0]} files")
    return 0


def _measured(size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        root = _project(place / "project", size)
        bare = min(_cpu_of(lambda: _bare(root, place / "bare")) for _ in range(ROUNDS))
        settings = Settings(root=root, owner="bench")
        desk = open_desk(settings.store_url)
        try:
            # The first task of a project also packs its base and probes the fence.
            first = _cpu_of(lambda: _whole(desk, settings, "first"))
            whole = min(
                _cpu_of(partial(_whole, desk, settings, f"task-{number}"))
                for number in range(ROUNDS)
            )
            copy = min(_cpu_of(lambda: _copy(desk, settings)) for _ in range(ROUNDS))
        finally:
            desk.close()
    row = {
        "files": size,
        "bare": round(bare, 3),
        "whole": round(whole, 3),
        "overhead": round(whole - bare, 3),
        "first": round(first, 3),
        "copy": round(copy, 3),
    }
    print(json.dumps(row))
    return row


def _bare(root: Path, copy: Path) -> None:
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".git", ".agent-run"))
    for command in (TESTS, WORK, TESTS):
        subprocess.run(["/bin/sh", "-c", command], cwd=copy, check=False, capture_output=True)
    shutil.rmtree(copy)


def _whole(desk: Desk, settings: Settings, task_id: str) -> None:
    manifest = Manifest(
        task_id=task_id,
        objective="Make the value two",
        allowed_paths=("src/value.py",),
        # Another word each time, so that no finding is remembered from the round before.
        verification=(Check(run=f"{TESTS} # {task_id}"),),
    )
    desk.handle(task_id, Post(actor="bench", manifest=manifest))
    order = Ordered(open_executor(None, settings, command=WORK), "bench")
    site = open_site(desk, settings)
    run = anyio.run(execute, site, task_id, task_id, order)
    task = run.tasks[task_id]
    if task.status is not Status.ACCEPTED:
        msg = f"the task came to {task.status}: {task.note} {task.verdict}"
        raise RuntimeError(msg)


def _copy(desk: Desk, settings: Settings) -> None:
    workspace = open_site(desk, settings).workspace
    if workspace is None:
        msg = f"there is no project at {str(settings.root)!r}"
        raise RuntimeError(msg)
    checkout = workspace.prepare(workspace.base(), task_id="copy", claim=1)
    workspace.discard(checkout)


def _project(root: Path, size: int) -> Path:
    for number in range(size - 3):
        file = root / f"pkg{number // 400}" / f"sub{number // 40 % 10}" / f"mod{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"def f{n}(): return {number * n}\n" for n in range(40)))
    for name, content in (
        ("src/value.py", "VALUE = 1\n"),
        ("tests/__init__.py", ""),
        ("tests/test_value.py", _TEST),
        (".gitignore", ".agent-run/\n"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "gc.auto=0")
    for command in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "x")):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    return root


_TEST = """\
import unittest
from src.value import VALUE


class Value(unittest.TestCase):
    def test_value(self):
        self.assertEqual(VALUE, 2)
"""


def _cpu_of(work: Callable[[], None]) -> float:
    before = _cpu()
    work()
    return _cpu() - before


def _cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
