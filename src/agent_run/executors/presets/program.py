"""Finds an installed command line, and what it must be able to read inside a fence.

Package managers put programs below the user's home, which a fence hides: each preset therefore
says which folders it needs, and no more of the home than those.
"""

import re
import shutil
from pathlib import Path
from typing import Final

from agent_run.errors import ExecutorMissing
from agent_run.executors.presets.shapes import Program

_SHEBANG: Final = re.compile(rb"#!\s*(\S+)(?:[ \t]+(\S+))?")


def find_program(name: str, search_path: str) -> Program:
    """Return the program called `name` on `search_path`, a list like the variable `PATH`.

    Raises:
        ExecutorMissing: there is none, or what it is written for is not there.
    """
    found = shutil.which(name, path=search_path)
    if found is None:
        msg = f"program {name!r} is not on PATH, expected it to be installed"
        raise ExecutorMissing(msg)
    start = Path(found)
    target = start.resolve()
    with target.open("rb") as file:
        shebang = _SHEBANG.match(file.readline(256))
    if shebang is None:
        return Program((str(target),), (_package(target),))
    interpreter = Path(shebang.group(1).decode(errors="replace"))
    if interpreter.name == "env" and shebang.group(2):
        wanted = shebang.group(2).decode(errors="replace")
        there = shutil.which(wanted, path=search_path)
        if there is None:
            msg = f"program {name!r} needs {wanted!r}, which is not on PATH"
            raise ExecutorMissing(msg)
        interpreter = Path(there)
    readable = (_package(target), *_of_interpreter(interpreter))
    return Program((str(interpreter), str(target)), tuple(dict.fromkeys(readable)))


def _package(target: Path) -> Path:
    """Return the folder that holds everything installed with `target`."""
    parts = target.parts
    if "node_modules" in parts:
        return Path(*parts[: parts.index("node_modules") + 1])
    if (target.parents[1] / "pyvenv.cfg").is_file():
        return target.parents[1]
    return target


def _of_interpreter(interpreter: Path) -> tuple[Path, ...]:
    real = interpreter.resolve()
    if not real.name.startswith("python"):
        return (real,)
    folders = []
    if (interpreter.parents[1] / "pyvenv.cfg").is_file():
        folders.append(interpreter.parents[1])
    # A virtual environment borrows the standard library of the Python it was made from.
    return (*folders, real.parents[1])
