"""Reading what pytest did, by a report that the tested code cannot simply write.

A plugin of ours adds canaries that must fail and signs its report with a key that it reads
and removes before anything that is tested is imported. Code inside the same process can still
do harm if it hunts for the key in memory; what is tested in its own process cannot be secured
fully.
"""

import hashlib
import hmac
import json
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

REPORT: Final = "report.json"
_PAPER: Final = "observing.json"
_PLUGIN: Final = "agent_run_report"
_FOLDER: Final = Path(__file__).parent / "report"
_CANARIES: Final = 3
_OF_A_SHELL: Final = frozenset("&|;<>()`$\n")


@dataclass(frozen=True, slots=True)
class Observing:
    """How one run of pytest is watched."""

    key: str
    canaries: tuple[str, ...]
    env: Mapping[str, str]
    readable: tuple[Path, ...]
    reports: tuple[str, ...] = (REPORT,)

    @property
    def papers(self) -> Mapping[str, bytes]:
        """What the plugin finds beside the place of its report, and takes away."""
        known = {"key": self.key, "canaries": self.canaries}
        return {_PAPER: json.dumps(known).encode()}


@dataclass(frozen=True, slots=True)
class Report:
    """What the plugin says about the tests that ran."""

    tests: Mapping[str, str] = field(default_factory=dict)
    """Outcome by test id: passed, failed, skipped, xfailed."""
    tampered: str = ""
    """What is wrong with the report itself. Empty means nothing."""

    @property
    def passed(self) -> int:
        return sum(outcome == "passed" for outcome in self.tests.values())

    @property
    def failed(self) -> int:
        return sum(outcome == "failed" for outcome in self.tests.values())


def observe_pytest(command: str) -> Observing | None:
    """Return how to watch `command`, or None if it does not look like a run of pytest."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not any(Path(word).name in {"pytest", "py.test"} for word in words):
        return None
    env = {"PYTHONPATH": str(_FOLDER), "PYTEST_ADDOPTS": f"-p {_PLUGIN}"}
    if _OF_A_SHELL.isdisjoint(command):
        # Nothing of the tree is on Python's path until the plugin has read its key.
        env["PYTHONSAFEPATH"] = "1"
    canaries = tuple(f"test_{secrets.token_hex(8)}" for _ in range(_CANARIES))
    return Observing(secrets.token_hex(32), canaries, env, (_FOLDER,))


def read_report(reports: Mapping[str, bytes], observing: Observing) -> Report | None:
    """Return what the report says, with what makes it doubtful; None if none was left."""
    raw = reports.get(REPORT)
    if raw is None:
        return None
    try:
        document: dict[str, Any] = json.loads(raw)
        body, signed = str(document["body"]), str(document["signature"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return Report(tampered="the report of pytest is not one")
    mine = hmac.new(observing.key.encode(), body.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(mine.encode(), signed.encode(errors="replace")):
        return Report(tampered="the report of pytest was written by someone else")
    seen: dict[str, Any] = json.loads(body)
    return Report(seen["tests"], _doubt(seen, observing))


def _doubt(seen: Mapping[str, Any], observing: Observing) -> str:
    changed: list[str] = seen["tampered"]
    if changed:
        return f"the tested code replaced parts of the test runner: {', '.join(changed)}"
    if not seen["tests"]:
        return ""  # no test was collected, so no canary was added
    for canary in observing.canaries:
        sung = seen["canaries"].get(canary, "never run")
        if sung != "failed":
            return f"a test that must fail was reported as {sung}"
    return ""
