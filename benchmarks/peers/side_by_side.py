"""The same experiments on agent-run and on every peer that can be installed here.

Each peer gets an environment of its own below `.cache/peers`, with pinned versions. One that
cannot be installed in time is named, with the reason, and the others go on.

Usage: peers [--only NAME...] [--patience SECONDS] [--steps N]
"""

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.telling import tell

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
PLACE: Final = ROOT / ".cache" / "peers"
LONGEST_RUN: Final = 300
"""Seconds that all experiments of one peer may take."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A framework, and what of it has to be installed."""

    name: str
    script: str
    requirements: tuple[str, ...] = ()
    """Empty means that this very environment has it."""
    steps: str = ""
    """The script that measures a durable step. Empty means that it has no such steps."""


PEERS: Final = (
    Peer("agent-run", "ours.py", steps="handoff_ours.py"),
    Peer(
        "langgraph",
        "langgraph_peer.py",
        ("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2"),
        "handoff_langgraph.py",
    ),
    Peer("pydantic-ai", "pydantic_ai_peer.py", ("pydantic-ai-slim==2.66.0",)),
    Peer("openai-agents", "openai_agents_peer.py", ("openai-agents==0.24.0",)),
)


class NotHere(Exception):
    """A peer cannot be measured on this machine; the message says why."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="peers", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=[peer.name for peer in PEERS])
    parser.add_argument("--patience", type=float, default=120, help="seconds for an install")
    parser.add_argument("--steps", type=int, help="measure a chain of so many steps instead")
    wanted = parser.parse_args(arguments)
    rows: list[Mapping[str, object]] = []
    missing: list[str] = []
    for peer in PEERS:
        if wanted.only and peer.name not in wanted.only:
            continue
        try:
            rows += measured(peer, patience=wanted.patience, steps=wanted.steps)
        except NotHere as why:
            missing.append(f"{peer.name}: {why}")
    tell(sorted(rows, key=lambda row: str(row.get("experiment", ""))))
    for line in missing:
        print(f"not measured: {line}")
    return 0


def measured(
    peer: Peer, *, patience: float, steps: int | None = None
) -> list[Mapping[str, object]]:
    """Return the rows of one peer.

    Raises:
        NotHere: It cannot be installed, or its experiments failed.
    """
    if steps and not peer.steps:
        return []
    order = [peer.steps, str(steps)] if steps else [peer.script]
    python = installed(peer, patience=patience)
    environment = {**os.environ, "PYTHONPATH": str(ROOT if not peer.requirements else HERE)}
    try:
        done = subprocess.run(
            [python, HERE / order[0], *order[1:]],
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST_RUN,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"took longer than {LONGEST_RUN} s"
        raise NotHere(msg) from error
    except subprocess.CalledProcessError as error:
        raise NotHere(_last_line(error.stderr)) from error
    return list(_rows(done.stdout))


def installed(peer: Peer, *, patience: float) -> Path:
    """Return the Python that has the peer, in an environment made once.

    Raises:
        NotHere: It could not be installed in time.
    """
    if not peer.requirements:
        return Path(sys.executable)
    home = PLACE / peer.name
    python, stamp = home / "bin" / "python", home / "made-from"
    made_from = "\n".join((sys.version, *peer.requirements))
    if stamp.is_file() and stamp.read_text() == made_from:
        return python
    print(f"installing {', '.join(peer.requirements)}", file=sys.stderr, flush=True)
    venv.create(home, with_pip=True, clear=True)
    pip: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    try:
        subprocess.run(
            [*pip, *peer.requirements],
            check=True,
            timeout=patience,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired as error:
        msg = f"could not be installed in {patience:g} s"
        raise NotHere(msg) from error
    except subprocess.CalledProcessError as error:
        msg = f"could not be installed: {_last_line(error.stderr)}"
        raise NotHere(msg) from error
    stamp.write_text(made_from)
    return python


def _rows(printed: str) -> Iterator[Mapping[str, object]]:
    for line in printed.splitlines():
        yield json.loads(line)


def _last_line(said: str) -> str:
    return (said.strip().splitlines() or ["without a word"])[-1]
