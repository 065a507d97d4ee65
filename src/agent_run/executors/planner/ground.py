"""The ground a plan stands on: which files there are, and which commands could be run."""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from agent_run.contract.paths import EPHEMERAL, any_of
from agent_run.executors.agent.files import Entry, Files

_ROOTS: Final = ("", "src/", "lib/")
_is_leftover: Final = any_of(EPHEMERAL)


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known of a project before anybody works on it."""

    files: frozenset[str]
    has_program: Callable[[str], bool] = lambda _name: False
    """Whether a command of this name can be run here."""
    has_package: Callable[[str], bool] = lambda _name: False
    """Whether a Python package of this name is installed here."""
    folders: frozenset[str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folders", frozenset(_folders(self.files)))

    def has_module(self, name: str) -> bool:
        """Say whether `python -m name` would find something to run."""
        inside = name.replace(".", "/")
        places = (f"{root}{inside}{end}" for root in _ROOTS for end in (".py", "/__main__.py"))
        if any(place in self.files for place in places):
            return True
        top = name.partition(".")[0]
        own = any(f"{root}{top}" in self.folders for root in _ROOTS)
        return not own and (top in sys.stdlib_module_names or self.has_package(top))

    def listing(self, most: int) -> str:
        """Return the files, a line each; deep folders become one line where there are many."""
        ordered = sorted(self.files)
        deepest = max((path.count("/") for path in ordered), default=0)
        for depth in range(deepest, -1, -1):
            lines = _collapsed(ordered, depth)
            if len(lines) <= most:
                return "\n".join(lines)
        return f"[{len(ordered)} files, too many to list]"


def ground_at(root: Path, *, search_path: str, files: Iterable[str] | None = None) -> Ground:
    """Return the ground of the project at `root`.

    `files` are its paths where the caller knows them better, as git does; by default every
    regular file counts that is no cache or build output.
    """
    found = files if files is not None else _found(root)
    return Ground(
        frozenset(found),
        has_program=lambda name: shutil.which(name, path=search_path) is not None,
        has_package=lambda name: find_spec(name) is not None,
    )


def _found(root: Path) -> Iterator[str]:
    for entry in Files(root).entries():
        if isinstance(entry, Entry) and not _is_leftover(entry.path):
            yield entry.path


def _folders(files: Iterable[str]) -> Iterator[str]:
    for path in files:
        parent = path.rpartition("/")[0]
        while parent:
            yield parent
            parent = parent.rpartition("/")[0]


def _collapsed(ordered: list[str], depth: int) -> list[str]:
    counted: dict[str, int] = {}
    for path in ordered:
        parts = path.split("/")
        shown = path if len(parts) <= depth + 1 else "/".join(parts[: depth + 1]) + "/"
        counted[shown] = counted.get(shown, 0) + 1
    return [
        f"{path} ({n} files)" if path.endswith("/") else path for path, n in counted.items()
    ]
