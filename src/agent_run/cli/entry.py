"""The front door: what `agent-run` starts.

It imports next to nothing, because `--version` must cost hardly more than Python itself.
"""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from agent_run.version import __version__

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and return its exit code."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    if asked == ["--version"]:
        sys.stdout.write(f"agent-run {__version__}\n")
        return 0
    # Looking for plugins of pydantic opens every installed package; it takes longer than
    # our own models, and strangers have no business in them. Who wants them sets it empty.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # noqa: TID251 - reads nothing
    # Loading makes thousands of objects that stay; looking for garbage among them is in vain.
    gc.disable()
    try:
        code: int = import_module("agent_run.cli.app").run(asked)
    except KeyboardInterrupt:
        # Only an interrupt before the door was open comes here.
        return _INTERRUPTED
    return code
