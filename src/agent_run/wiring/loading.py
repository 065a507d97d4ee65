"""A function of the user's by its name: `package.module:name`, installed or in the project.

What it names is the user's own code and runs in our process, as trusted as the program.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from agent_run.errors import ContractError

LIKE: Final = "package.module:name"
Found: TypeAlias = Callable[..., Any]


def function_at(place: str, *, called: str, root: Path) -> Found:
    """Return the function that `place` names; `called` says in a message what it is for.

    Modules of the project at `root` are found as well, after everything that is installed.

    Raises:
        ContractError: There is none of this name, or what is there cannot be called.
    """
    module, colon, name = place.partition(":")
    if not (colon and module and name) or module.startswith("."):
        msg = f"{called} {place!r} is not like {LIKE!r}"
        raise ContractError(msg)
    if str(root) not in sys.path:
        # At the end: a file of the project must not stand in for a library that we use.
        sys.path.append(str(root))
    try:
        found = getattr(import_module(module), name)
    except Exception as error:
        msg = f"{called} {place!r} cannot be loaded: {str(error) or type(error).__name__}"
        raise ContractError(msg) from error
    if not callable(found):
        msg = f"{called} {place!r} is {type(found).__name__}, expected a function"
        raise ContractError(msg)
    function: Found = found
    return function
