"""Who plays in the demo: six executors for one task, and what each of them does."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_run.executors.command import CommandExecutor

_SCRIPTS: Final = Path(__file__).with_name("executors")


@dataclass(frozen=True, slots=True)
class Part:
    """One executor of the play."""

    owner: str
    script: str
    does: str
    """What it does, in words for the audience."""


MISBEHAVING: Final = (
    Part("executor-1", "wanderer.py", "fixes it, and wanders out of scope"),
    Part("executor-2", "test_editor.py", "fixes nothing, and edits the tests"),
    Part("executor-3", "liar.py", "fixes it, and lies in its record"),
    Part("executor-4", "crasher.py", "crashes half-way"),
)
LATE: Final = Part("executor-5", "latecomer.py", "overstays its claim")
GOOD: Final = Part("executor-6", "well_behaved.py", "fixes it, and says what it did")
ALL: Final = (*MISBEHAVING, LATE, GOOD)


def python_places() -> tuple[Path, ...]:
    """Return what must be readable so that this very Python runs."""
    home = Path(sys.executable).resolve().parent
    places = (Path(sys.prefix), Path(sys.base_prefix), home)
    return tuple(dict.fromkeys(place.resolve() for place in places))


def play(part: Part, env: Mapping[str, str], readable: tuple[Path, ...]) -> CommandExecutor:
    """Return the executor that plays `part`."""
    words = (sys.executable, "-I", "-S", str(_SCRIPTS / part.script))
    return CommandExecutor(part.owner, shlex.join(words), env, (*readable, _SCRIPTS))
