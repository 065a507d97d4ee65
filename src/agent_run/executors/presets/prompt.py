"""The text a coding agent starts from: the brief, and how to hand over the record."""

from pathlib import Path
from typing import Final

from agent_run.errors import ContractError
from agent_run.executors.presets.record import SCHEMA_TEXT
from agent_run.executors.presets.shapes import Assignment

LONGEST_FLAG: Final = 100_000
"""In bytes. Linux takes no argument of 128 KiB or more."""


def brief_text(assignment: Assignment) -> str:
    """Return the brief as text that can be written to a file or passed to a program.

    Raises:
        ContractError: the brief holds a character that neither can.
    """
    brief = assignment.brief
    if "\0" in brief:
        msg = f"the brief {str(assignment.brief_path)!r} holds the NUL character, expected text"
        raise ContractError(msg)
    return brief.encode(errors="replace").decode()


def prompt(assignment: Assignment, closing: str = "") -> str:
    """Return the brief with `closing` after it, short enough to be a flag."""
    brief = brief_text(assignment)
    if len(brief.encode()) > LONGEST_FLAG:
        brief = (
            f"Your brief is in the file {assignment.brief_path}. "
            "Read all of it before you do anything else, then do what it asks."
        )
    return f"{brief}\n\n{closing}" if closing else brief


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
