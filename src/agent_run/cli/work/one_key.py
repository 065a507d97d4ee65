"""Deciding with one key: what can be decided about a task, asked of whoever looks at it."""

import sys
from collections.abc import Mapping, Sequence
from typing import Final

import click

from agent_run.cli.speech import Speech
from agent_run.cli.visible import visible
from agent_run.cli.work.recipes import checks_a_draft
from agent_run.ledger.state import Status, TaskState

OF_A_CHANGE: Final = (
    "it does not do what was asked",
    "it breaks a constraint",
    "tests are missing or wrong",
    "it changes too much",
    "it is not safe to merge",
)
"""What a rejection of changed files mostly means; anything else can be typed instead."""
OF_A_FINDING: Final = (
    "what was found is right, and must be mended first",
    "something is missing",
    "it is wrong",
    "it is not clear enough",
)
"""What a rejection of other work mostly means."""
_WORDS: Final[Mapping[str, str]] = {
    "a": "approve",
    "r": "reject",
    "s": "ask the executor",
    "w": "write an answer",
    "p": "permit the paths asked for",
}


def can_ask(speech: Speech) -> bool:
    """Say whether a person sits at both ends of a terminal."""
    return sys.stdin.isatty() and speech.to_terminal and not (speech.as_json or speech.quiet)


def decision_by_key(task: TaskState) -> tuple[str, object] | None:
    """Return the option that the person chose, and its value; None if nothing was decided."""
    keys = _keys(task)
    if not keys:
        return None
    offer = ", ".join(f"[{key}] {_WORDS[key]}" for key in keys)
    click.echo(f"{offer}, any other key to leave it: ", nl=False)
    key = click.getchar().lower()
    click.echo(visible(key))
    return _chosen(key, task) if key in keys else None


def _chosen(key: str, task: TaskState) -> tuple[str, object]:
    match key:
        case "a":
            return "approve", True
        case "r":
            return "reject", _reason(
                OF_A_CHANGE if task.manifest.allowed_paths else OF_A_FINDING
            )
        case "s":
            return "ask", _words("What should it know")
        case "w":
            return "answer", _words("Answer")
        case _:
            return "widen", task.question.wider_scope if task.question else ()


def _keys(task: TaskState) -> str:
    match task.status:
        case Status.WAITING if not task.approved:
            return "a"
        case Status.ASKED if task.question and task.question.wider_scope:
            return "pw"
        case Status.ASKED:
            return "w"
        case Status.ESCALATED | Status.SUBMITTED if checks_a_draft(task):
            return "ar" if task.record is not None else "r"
        case Status.ESCALATED | Status.SUBMITTED:
            return "arsw" if task.record is not None else "w"
        case _:
            return ""


def _reason(reasons: Sequence[str]) -> str:
    """Return a reason of the list, or the person's own; any other number is asked again."""
    for number, reason in enumerate(reasons, start=1):
        click.echo(f"  {number}  {reason}")
    while True:
        said = _words("Why (a number, or your own words)")
        if not said.lstrip("-").isdecimal():
            return said
        if 1 <= int(said) <= len(reasons):
            return reasons[int(said) - 1]
        click.echo(f"{said} is not in the list, expected 1 to {len(reasons)}, or words")


def _words(question: str) -> str:
    """Return what the person typed; nothing is asked again."""
    while True:
        said = str(click.prompt(question)).strip()
        if said:
            return said
