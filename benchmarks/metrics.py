"""What `agent-run metrics` costs: CPU of whole processes on ledgers of growing size."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from pydantic import JsonValue

from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.contract.verdict import Finding, Verdict
from agent_run.ledger.commands import Claim, Command, Judge, Post, Submit
from agent_run.wiring import open_desk

SIZES = (1_000, 10_000)
ROUNDS = 5
PASSED = Verdict(
    findings=(
        Finding(gate="scope", outcome="pass", reason="verified", evidence="2 changed"),
        Finding(gate="record", outcome="pass", reason="verified", evidence="agrees"),
        Finding(gate="confidence", outcome="pass", reason="verified", evidence="0.9"),
    )
)
OBSERVED: dict[str, JsonValue] = {
    "executor": "tone",
    "files_changed": ["drafts/one.md"],
    "commands_run": ["check drafts/one.md"],
    "exit_code": 0,
    "ended": "exited",
    "elapsed_ms": 812,
    "model": "some-model",
    "fence": {"kind": "landlock+seccomp", "abi": 7, "lacks": []},
}


def main(arguments: Sequence[str]) -> int:
    """Print CPU seconds for each size and form, and the ratio to `--help`."""
    sizes = [int(size) for size in arguments] or list(SIZES)
    print(f"{'steps':>7} {'pages':>7} {'form':12} {'cpu s':>7} {'x empty':>8}")
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            pages = _ledger(Path(folder), size)
            empty = min(_cpu(["--help"], Path(folder)) for _ in range(ROUNDS))
            for form in ("", "--json", "--prometheus", "--html"):
                asked = ["metrics", *([form] if form else [])]
                asked += ["page.html"] if form == "--html" else []
                took = min(_cpu(asked, Path(folder)) for _ in range(ROUNDS))
                name = form or "table"
                ratio = took / empty
                print(f"{size:7} {pages:7} {name:12} {took:7.2f} {ratio:8.1f}")
                row = {"topic": "metrics", "steps": size, "pages": pages, "form": name}
                print(json.dumps(row | {"cpu_s": round(took, 3), "ratio": round(ratio, 1)}))
    return 0


def _ledger(folder: Path, steps: int) -> int:
    (folder / "agent-run.toml").write_text("")
    desk = open_desk(f"sqlite:///{folder / '.agent-run' / 'ledger.db'}")
    try:
        done = 0
        while done < steps:
            some = min(500, steps - done)
            desk.handle("large", *_commands(done, some))
            done += some
        return len(desk.pages("large"))
    finally:
        desk.close()


def _commands(start: int, count: int) -> Iterator[Command]:
    for number in range(start, start + count):
        name, page = f"step-{number}", number * 4
        manifest = Manifest(
            task_id=name,
            objective="Verify that the tone of the draft matches the brand voice",
            handoff_notes=("Use the tone guide", "Quote what you find"),
            min_confidence=0.7,
            labels={"step": f"kind-{number % 7}"},
        )
        record = Record(
            status="passed",
            confidence=0.7 + (number % 30) / 100,
            notes="The tone matches the guide, but there is no call to action.",
            tokens_used=620,
            requests_made=1,
            cost_usd=Decimal("0.0021"),
            elapsed_ms=2_800,
        )
        yield Post(actor="planner", manifest=manifest)
        yield Claim(task_id=name, owner="worker")
        yield Submit(
            task_id=name, actor="worker", claim=page + 2, record=record, observed=OBSERVED
        )
        yield Judge(task_id=name, actor="judge", verdict=PASSED)


def _cpu(arguments: Sequence[str], folder: Path) -> float:
    tool = str(Path(sys.executable).parent / "agent-run")
    # Without kept bytecode every start would compile what was changed since.
    unwanted = ("AGENT_RUN", "PYTHONDONTWRITEBYTECODE")
    clean = {
        key: value
        for key, value in os.environ.items()
        if not any(word in key for word in unwanted)
    }
    before = _children()
    subprocess.run([tool, *arguments], cwd=folder, check=True, capture_output=True, env=clean)
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
