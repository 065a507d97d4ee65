"""From arguments to an exit code: the group of all commands, and how errors are told.

A user's mistake gets one sentence, or one line for each fault; never a traceback.
"""

import contextlib
import errno
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Final, TextIO

import click

from agent_run.cli.declaring import LazyGroup, Unheard, common_options
from agent_run.cli.exits import Exit, exit_code_of
from agent_run.cli.visible import visible
from agent_run.errors import AgentRunError
from agent_run.version import __version__

NAME: Final = "agent-run"
_TOO_MANY: Final = re.compile(r"Got unexpected extra arguments? \((.*)\)\.?", re.DOTALL)
COMPLETE: Final = "_AGENT_RUN_COMPLETE"
_OF_THE_MACHINE: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EMFILE}
)
"""Errors that no code of ours can answer: rights, space, limits."""

_HELP: Final = """The handoff layer for multi-agent systems: contracts that hold.

A task is posted, claimed by one owner, handed in with a record, and judged by gates; all of
it is written to a ledger that cannot be changed."""
_EPILOG: Final = """Exit codes: 0 done, 1 failed, 2 bad usage or invalid input, 3 environment
not fit, 4 a gate refused the work, 5 claim refused or stale, 6 over budget, 7 waits for a
person, 130 interrupted."""


def _print_version(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if value and not context.resilient_parsing:
        click.echo(f"{NAME} {__version__}")
        context.exit()


cli = LazyGroup(
    NAME,
    params=[
        *common_options(),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Show the version and exit.",
        ),
    ],
    help=_HELP,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
"""The whole command line."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    _write_whatever_comes()
    try:
        code = cli.main(
            list(arguments), prog_name=NAME, complete_var=COMPLETE, standalone_mode=False
        )
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - nobody is shown a traceback
        return _ended(error, _own_words(arguments))
    return int(code or 0)


def _ended(error: BaseException, asked: frozenset[str]) -> int:
    """Tell what went wrong, and return the code that says so."""
    match error:
        case click.Abort() | KeyboardInterrupt():
            return Exit.INTERRUPTED
        case BrokenPipeError() | Unheard():
            return _nobody_listens()
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.format_message(), err=True)
            return Exit.INVALID
        case click.ClickException():
            return _told(_usage(error), error.exit_code, "Usage", (), asked)
        case AgentRunError():
            faults: tuple[object, ...] = getattr(error, "faults", ())
            return _told(str(error), exit_code_of(error), type(error).__name__, faults, asked)
        case _:
            return _crashed(error, asked)


def _own_words(arguments: Sequence[str]) -> frozenset[str]:
    """Return the options that say how to speak; parsing may fail before it gets to them."""
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return frozenset(words)


def _told(
    message: str, code: int, kind: str, faults: tuple[object, ...], asked: frozenset[str]
) -> int:
    lines = [str(fault) for fault in faults] or [message]
    for line in lines:
        sys.stderr.write(f"{NAME}: {visible(line)}\n")
    if not asked.isdisjoint({"--json", "--jsonl"}):
        error = {"kind": kind, "message": message, "faults": [fault_as_json(f) for f in faults]}
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.write(json.dumps({"error": error}) + "\n")
            sys.stdout.flush()
    return code


def fault_as_json(fault: object) -> dict[str, object]:
    """Return one fault of a document as a JSON object."""
    names = ("source", "line", "column", "key", "message")
    if not hasattr(fault, "message"):
        return {"message": str(fault)}
    return {name: getattr(fault, name, None) for name in names}


def _usage(error: click.ClickException) -> str:
    said = _in_our_words(error.format_message())
    context = getattr(error, "ctx", None)
    path = context.command_path if context else NAME
    return f"{said[:1].lower()}{said[1:].rstrip('.')}; see {path} --help"


def _in_our_words(said: str) -> str:
    """Return a sentence of the parser's on one line, and as we would say it."""
    line = said.replace(":\n\t", ": ").replace(",\n\t", ", ")
    more = _TOO_MANY.fullmatch(line)
    return f"Takes no further arguments, got {more[1]!r}" if more else line


def _crashed(error: BaseException, asked: frozenset[str]) -> int:
    hint = "" if not asked.isdisjoint({"-v", "--verbose"}) else "; -v shows where"
    if not hint:
        traceback.print_exception(error)
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        said = f"{error.filename or 'a file'}: {error.strerror}"
        return _told(said, Exit.UNFIT, type(error).__name__, (), asked)
    said = f"unexpected {type(error).__name__}: {error}{hint}"
    return _told(said, Exit.FAILED, type(error).__name__, (), asked)


def _write_whatever_comes() -> None:
    """Let no character stop a sentence, whatever the terminal's encoding is."""
    # Who closed a stream before starting us does not want to hear it.
    sys.stdout = sys.stdout or _to_nowhere()
    sys.stderr = sys.stderr or _to_nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _to_nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - open to the end


def _nobody_listens() -> int:
    """End as quietly as a program that SIGPIPE ends, and with the code a shell gives that."""
    # Python would flush once more while it ends, and complain about it.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE
