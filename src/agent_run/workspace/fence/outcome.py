"""Reads the helper's last words as the end of a command."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent_run.errors import FenceBroken
from agent_run.ports.fence import Ended, Launch

_NO_SUCH_FILE: Final = 2
_EXIT_NOT_FOUND: Final = 127
_EXIT_NOT_EXECUTABLE: Final = 126


@dataclass(frozen=True, slots=True)
class Outcome:
    """The part of `Finished` that the helper knows."""

    ended: Ended
    exit_code: int | None = None
    signal: int | None = None
    detail: str = ""
    cpu_ms: int = 0


def read(said: Sequence[str], launch: Launch, *, over_output: bool) -> Outcome:
    """How the command ended.

    Raises:
        FenceBroken: the helper did not say, or said that it could not begin.
    """
    facts = dict(line.split(" ", 1) for line in said)
    cpu_ms = int(facts.pop("cpu", "0"))
    if "failed" in facts:
        msg = f"the fence could not be put up: {facts['failed']}"
        raise FenceBroken(msg)
    if over_output:
        detail = f"wrote more than {launch.limits.output_bytes} bytes of output"
        return Outcome("output_limit", detail=detail, cpu_ms=cpu_ms)
    if "exited" in facts:
        return Outcome("exited", exit_code=int(facts["exited"]), cpu_ms=cpu_ms)
    if "signalled" in facts:
        number = int(facts["signalled"])
        detail = f"was ended by signal {number}"
        return Outcome("signalled", signal=number, detail=detail, cpu_ms=cpu_ms)
    if "unstartable" in facts:
        return _unstartable(facts["unstartable"], launch, cpu_ms)
    if "limit" in facts:
        return _limited(facts["limit"], launch, cpu_ms)
    msg = f"the helper of {launch.argv[0]!r} ended without saying how the command did"
    raise FenceBroken(msg)


def _unstartable(trouble: str, launch: Launch, cpu_ms: int) -> Outcome:
    number, _, reason = trouble.partition(" ")
    code = _EXIT_NOT_FOUND if int(number) == _NO_SUCH_FILE else _EXIT_NOT_EXECUTABLE
    detail = f"could not start {launch.argv[0]!r} inside the fence: {reason}"
    return Outcome("unstartable", exit_code=code, detail=detail, cpu_ms=cpu_ms)


def _limited(name: str, launch: Launch, cpu_ms: int) -> Outcome:
    limits = launch.limits
    sentences: dict[str, tuple[Ended, str]] = {
        "timeout": ("timeout", f"ran longer than {limits.wall_sec} s"),
        "cpu": ("cpu", f"used more than {limits.cpu_sec} s of processor time"),
        "memory": ("memory", f"used more than {limits.memory_mb} MiB of memory"),
        "processes": ("processes", f"ran more than {limits.processes} processes at once"),
        "disk": ("disk", f"wrote more than {limits.disk_mb} MiB to disk"),
    }
    ended, detail = sentences[name]
    return Outcome(ended, detail=detail, cpu_ms=cpu_ms)
