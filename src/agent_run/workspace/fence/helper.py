"""How the trusted side starts its helper and what it hands over.

The helper's package is named to the new interpreter without running the package's own
`__init__`, which would import far more than the helper may cost.
"""

import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_run.workspace.fence.spec import dump

_PACKAGES: Final = ("agent_run", "agent_run.workspace", "agent_run.workspace.fence")
_BOOT: Final = """
import sys
for name, path in zip(sys.argv[1].split(), sys.argv[2:5]):
    sys.modules[name] = module = type(sys)(name)
    module.__path__ = [path]
from agent_run.workspace.fence.inside import main
sys.exit(main(sys.argv[5:]))
"""


@dataclass(frozen=True, slots=True)
class Line:
    """Both ends of the talk with one helper, and how to start it."""

    command: tuple[str, ...]
    ours: socket.socket
    """When this closes, the helper ends the command and then itself."""
    theirs: socket.socket
    """To be closed as soon as the helper has started."""
    handles: tuple[int, ...]
    """The open files that the helper must inherit."""


@contextmanager
def line_to_helper(fields: Mapping[str, object]) -> Iterator[Line]:
    """What is needed to start one helper with the `Spec` of `fields`."""
    ours, theirs = socket.socketpair()
    with ours, theirs, tempfile.TemporaryFile() as file:
        file.write(dump(dict(fields)))
        file.flush()
        handles = (file.fileno(), theirs.fileno())
        yield Line(command=_command(handles), ours=ours, theirs=theirs, handles=handles)


def _command(handles: tuple[int, ...]) -> tuple[str, ...]:
    here = Path(__file__).parent
    folders = (here.parent.parent, here.parent, here)
    return (
        sys.executable,
        "-I",
        "-S",
        "-c",
        _BOOT,
        " ".join(_PACKAGES),
        *(os.fspath(folder) for folder in folders),
        *(str(handle) for handle in handles),
    )
