"""The text a coding agent starts from: the brief, and how to hand over the record."""

from pathlib import Path
from typing import Final

from agent_run.errors import ContractError
from agent_run.executors.presets.record import SCHEMA_TEXT
from agent_run.executors.presets.shapes import Assignment

LONGEST_FLAG: Final = 100_000
"""In bytes. Linux takes no argument of 128 KiB or more."""


def prompt(assignment: Assignment, closing: str = "") -> str:
    """Return the brief with `closing` after it, short enough to be a flag.

    Raises:
        ContractError: the brief holds a character that no flag can.
    """
    brief = assignment.brief
    if "\0" in brief:
        msg = f"the brief {str(assignment.brief_path)!r} holds the NUL character, expected text"
        raise ContractError(msg)
    if len(brief.encode(errors="replace")) > LONGEST_FLAG:
        brief = (
            f"Your brief is in the file {assignment.brief_path}. "
            "Read all of it before you do anything else, then do what it asks."
        )
    # A lone surrogate cannot be passed to a program at all.
    whole = f"{brief}\n\n{closing}" if closing else brief
    return whole.encode(errors="replace").decode()


def record_as_answer() -> str:
    """Return the request for a record as the last words of the agent."""
    return (
        "When the work is done, answer with one JSON object and nothing else: the record of "
        f"what you did. It follows this JSON Schema:\n{SCHEMA_TEXT}"
    )


def record_as_file(path: Path) -> str:
    """Return the request for a record in a file."""
    return (
        f"Before you finish, write the record of what you did as one JSON object to the file "
        f"{path}. It follows this JSON Schema:\n{SCHEMA_TEXT}"
    )
