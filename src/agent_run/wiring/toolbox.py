"""The tools of the user's search path, and what a fence must grant so that they run.

Only the search path and the language are taken over from the user's environment; everything
else an executor or a gate sees is named in the configuration. Of a folder such as `~/.local`
only programs and their libraries are granted, never the rest, where people keep secrets.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_KEPT: Final = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib")
_OF_A_PREFIX: Final = ("lib", "lib64", "libexec", "include")
"""What programs in `prefix/bin` need of their prefix."""
_PYTHONS: Final = ("python3", "python")


@dataclass(frozen=True, slots=True)
class Toolbox:
    """A search path without the project's own folders, and the folders behind it."""

    path: str
    env: Mapping[str, str]
    readable: tuple[Path, ...]
    imports: tuple[str, ...] = ()
    """Folders of the project, relative to its root, that an environment imports from."""

    def fingerprint(self) -> str:
        """Return a word for these tools, another one when one is replaced or installed."""
        digest = hashlib.sha256()
        for name, value in sorted(self.env.items()):
            digest.update(f"{name}={value}\n".encode())
        for folder in map(Path, self.path.split(os.pathsep)):
            for place in (folder, *_interpreters(folder), *_packages(folder)):
                digest.update(_stamp(place).encode())
        digest.update("\n".join(self.imports).encode())
        return digest.hexdigest()


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
    places = (place for folder in folders for place in _behind(folder))
    readable = dict.fromkeys(place for place in places if not _too_much(place, environ, root))
    imports = dict.fromkeys(name for folder in folders for name in _imports(folder, root))
    return Toolbox(env["PATH"], env, tuple(readable), tuple(imports))


def _folders(path: str, root: Path) -> Iterator[Path]:
    for name in dict.fromkeys(path.split(os.pathsep)):
        folder = Path(name)
        if not name or not folder.is_absolute() or not _may_be_entered(folder):
            continue
        if folder.is_relative_to(root) and not _is_environment(folder.parent):
            continue
        yield folder


def _may_be_entered(folder: Path) -> bool:
    """Say whether it is a folder of the user's; one that may not be read holds no tool."""
    return os.access(folder, os.R_OK | os.X_OK) and folder.is_dir()


def _behind(folder: Path) -> Iterator[Path]:
    """Yield what must be readable so that the programs in `folder` run."""
    if _of_system(folder):
        return
    yield from _of_prefix(folder)
    for program in _linked(folder):
        if not _of_system(program):
            yield program
            yield from _of_prefix(program.parent)


def _of_prefix(folder: Path) -> Iterator[Path]:
    prefix = folder.parent
    if _is_environment(prefix):
        yield prefix
        return
    yield folder
    if folder.name == "bin":
        yield from (prefix / name for name in _OF_A_PREFIX if (prefix / name).is_dir())


def _linked(folder: Path) -> Iterator[Path]:
    """Yield where the links in `folder` lead, as those of tools that have their own home."""
    with os.scandir(folder) as entries:
        links = [entry.path for entry in entries if entry.is_symlink()]
    for link in sorted(links):
        target = Path(link).resolve()
        if os.access(target, os.R_OK) and target.is_file() and target.parent != folder:
            yield target


def _interpreters(folder: Path) -> Iterator[Path]:
    for name in _PYTHONS:
        if (folder / name).exists():
            yield (folder / name).resolve()


def _packages(folder: Path) -> Iterator[Path]:
    """Yield the folders that change when a package is installed beside these programs."""
    return (folder.parent / "lib").glob("python3*/site-packages")


def _imports(folder: Path, root: Path) -> Iterator[str]:
    """Yield what is installed from the project itself, as `pip install -e .` leaves it."""
    for packages in _packages(folder):
        for file in sorted(packages.glob("*.pth")):
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                place = Path(line.strip())
                if place.is_absolute() and place.is_relative_to(root):
                    yield place.relative_to(root).as_posix()


def _stamp(place: Path) -> str:
    try:
        status = place.stat()
    except OSError:
        return f"{place} is not there\n"
    size = status.st_size if stat.S_ISREG(status.st_mode) else 0
    return f"{place} {status.st_mtime_ns} {size}\n"


def _too_much(place: Path, environ: Mapping[str, str], root: Path) -> bool:
    """Say whether granting `place` would show the user's home or the project itself."""
    home = environ.get("HOME", "")
    kept = (root, *((Path(home),) if home else ()))
    return any(one.is_relative_to(place) for one in kept)


def _is_environment(prefix: Path) -> bool:
    return (prefix / "pyvenv.cfg").is_file()


def _of_system(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in _SYSTEM)
