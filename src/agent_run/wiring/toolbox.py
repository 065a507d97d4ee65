"""The tools of the user's search path, and what a fence must grant so that they run.

Only the search path and the language are taken over from the user's environment; everything
else an executor or a gate sees is named in the configuration.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_KEPT: Final = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib")


@dataclass(frozen=True, slots=True)
class Toolbox:
    """A search path without the project's own folders, and the folders behind it."""

    path: str
    env: Mapping[str, str]
    readable: tuple[Path, ...]


def toolbox(environ: Mapping[str, str], *, root: Path) -> Toolbox:
    """Return the tools that executors and gates may use.

    A folder of the project itself is left out of the search path, so that nobody can put a
    program there; its virtual environment stays, because git does not hand it over.
    """
    folders = list(_folders(environ.get("PATH", os.defpath), root))
    env = {name: environ[name] for name in _KEPT if environ.get(name)}
    env["PATH"] = os.pathsep.join(map(str, folders))
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env["PYTHONNOUSERSITE"] = "1"
    readable = dict.fromkeys(place for folder in folders for place in _behind(folder))
    return Toolbox(env["PATH"], env, tuple(readable))


def _folders(path: str, root: Path) -> Iterator[Path]:
    for name in dict.fromkeys(path.split(os.pathsep)):
        folder = Path(name)
        if not name or not folder.is_absolute() or not folder.is_dir():
            continue
        if folder.is_relative_to(root) and not _is_environment(folder.parent):
            continue
        yield folder


def _behind(folder: Path) -> Iterator[Path]:
    """Yield what must be readable so that the programs in `folder` run."""
    if _of_system(folder):
        return
    prefix = folder.parent
    yield prefix if _is_environment(prefix) or (prefix / "lib").is_dir() else folder
    for name in ("python3", "python"):
        program = folder / name
        if program.exists():
            real = program.resolve()
            if not _of_system(real):
                yield real.parent.parent


def _is_environment(prefix: Path) -> bool:
    return (prefix / "pyvenv.cfg").is_file()


def _of_system(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in _SYSTEM)
