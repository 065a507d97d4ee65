"""Reading what pytest did, by a report that the tested code cannot simply write.

A plugin of ours adds a canary that must fail and signs its report with a key that it read
and removed before any test was imported. Code inside the same process can still do harm if
it hunts for the key in memory; what is tested in its own process cannot be secured fully.
"""

import hashlib
import hmac
import json
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

REPORT: Final = "report.json"
_PLUGIN: Final = "agent_run_report"
_FOLDER: Final = Path(__file__).parent / "report"


@dataclass(frozen=True, slots=True)
class Observing:
    """How one run of pytest is watched."""

    key: str
    canary: str
    env: Mapping[str, str]
    readable: tuple[Path, ...]
    reports: tuple[str, ...] = (REPORT,)


@dataclass(frozen=True, slots=True)
class Report:
    """What the plugin says about the tests that ran."""

    passed: int
    failed: int
    tampered: str
    """What is wrong with the report itself. Empty means nothing."""


def observe_pytest(command: str) -> Observing | None:
    """Return how to watch `command`, or None if it does not look like a run of pytest."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not any(Path(word).name in {"pytest", "py.test"} for word in words):
        return None
    key, canary = secrets.token_hex(32), f"agent_run_canary_{secrets.token_hex(8)}"
    env = {
        "PYTHONPATH": str(_FOLDER),
        "PYTEST_ADDOPTS": f"-p {_PLUGIN} -p no:cacheprovider",
        "AGENT_RUN_REPORT_KEY": key,
        "AGENT_RUN_CANARY": canary,
    }
    return Observing(key, canary, env, (_FOLDER,))


def read_report(reports: Mapping[str, bytes], observing: Observing) -> Report:
    """Return what the report says, with what makes it doubtful."""
    raw = reports.get(REPORT)
    if raw is None:
        return Report(0, 0, "pytest ended without leaving its report")
    try:
        document: dict[str, Any] = json.loads(raw)
        body = str(document["body"])
        signed = str(document["signature"])
        outcomes: dict[str, str] = json.loads(body)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Report(0, 0, "the report of pytest is not one")
    mine = hmac.new(observing.key.encode(), body.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(mine, signed):
        return Report(0, 0, "the report of pytest was written by someone else")
    canary = outcomes.pop(observing.canary, None)
    passed = sum(outcome == "passed" for outcome in outcomes.values())
    failed = sum(outcome == "failed" for outcome in outcomes.values())
    if canary != "failed":
        said = f"a test that must fail was reported as {canary or 'never run'}"
        return Report(passed, failed, said)
    if failed:
        return Report(passed, failed, f"{failed} tests failed, yet pytest exited with 0")
    return Report(passed, failed, "")
