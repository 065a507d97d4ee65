"""The menu: every command, the line that help shows, and where it is declared.

This is the one place to add a command. Nothing here is imported before it is asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Entry:
    """One command of the menu."""

    declared: str
    """`module:attribute` of the click command."""
    says: str
    """The line that help shows; the command's own help begins with it."""


_SETUP: Final = "agent_run.cli.setting_up"
_HANDOFF: Final = "agent_run.cli.handing_over"
_EXECUTE: Final = "agent_run.cli.executing"
_REVIEW: Final = "agent_run.cli.reviewing"
_LOOK: Final = "agent_run.cli.looking"
_MEASURE: Final = "agent_run.cli.measuring"
_RUN: Final = "agent_run.cli.running"
_RECIPE: Final = "agent_run.cli.recipes"

MENU: Final[Mapping[str, Mapping[str, Entry]]] = {
    "Start here": {
        "demo": Entry(
            f"{_SETUP}:demo", "See six executors at one task, of which one can be trusted."
        ),
        "init": Entry(f"{_SETUP}:init", "Set up this folder: settings, an example, a ledger."),
        "doctor": Entry(f"{_SETUP}:doctor", "Say what is missing here and how to fix it."),
    },
    "Write": {
        "check": Entry(f"{_HANDOFF}:check", "Report every fault of every file."),
        "post": Entry(
            f"{_HANDOFF}:post", "Put the tasks of manifests and plans on the ledger."
        ),
        "plan": Entry(f"{_RUN}:plan", "Let a model write a plan for review."),
        "advise": Entry(
            f"{_RUN}:advise", "Say which topology fits a task, at what cost, and why."
        ),
    },
    "Execute": {
        "execute": Entry(
            f"{_EXECUTE}:execute", "Claim a task, do it in a fence, and judge what came of it."
        ),
        "verify": Entry(f"{_EXECUTE}:verify", "Judge what was submitted."),
        "run": Entry(f"{_RUN}:run", "Carry a whole plan out."),
        "resume": Entry(f"{_RUN}:resume", "Go on with a run from where its ledger stands."),
        "worker": Entry(
            f"{_EXECUTE}:worker", "Claim and do tasks as they come, on one or many machines."
        ),
        "judge": Entry(f"{_EXECUTE}:judge", "Judge records as they are submitted."),
        "cancel": Entry(
            f"{_EXECUTE}:cancel", "Say that a task or a whole run is no longer wanted."
        ),
    },
    "Recipes": {
        "qa": Entry(f"{_RECIPE}:qa", "Check drafts against a checklist, and report."),
        "configure": Entry(
            f"{_RECIPE}:configure", "Turn a conversation into a plan, and follow it."
        ),
    },
    "Decide": {
        "inbox": Entry(
            f"{_REVIEW}:inbox", "Show what waits for a person, and what to type next."
        ),
        "review": Entry(
            f"{_REVIEW}:review", "Look at work that waits for a person, and decide."
        ),
        "apply": Entry(f"{_EXECUTE}:apply", "Bring an accepted change to the current branch."),
        "rollback": Entry(
            f"{_EXECUTE}:rollback", "Take an applied change back, by a new commit."
        ),
    },
    "Hand over": {
        "claim": Entry(
            f"{_HANDOFF}:claim", "Take the claim check of a task, before any write."
        ),
        "checkout": Entry(
            f"{_EXECUTE}:checkout", "Get a copy of the project to work in by hand."
        ),
        "heartbeat": Entry(f"{_HANDOFF}:heartbeat", "Show that the worker lives."),
        "release": Entry(f"{_HANDOFF}:release", "Give a claimed task back unfinished."),
        "submit": Entry(f"{_HANDOFF}:submit", "Hand in the record of the work."),
    },
    "Look": {
        "status": Entry(f"{_LOOK}:status", "Show where the tasks stand."),
        "show": Entry(f"{_LOOK}:show", "Show everything about one task."),
        "ledger": Entry(f"{_LOOK}:ledger", "Show the pages of the ledger, or verify them."),
        "metrics": Entry(f"{_MEASURE}:metrics", "Show what the ledger says in numbers."),
        "trace": Entry(f"{_MEASURE}:trace", "Draw when everything about a task happened."),
    },
    "Evaluate": {
        "eval": Entry(
            f"{_MEASURE}:evaluate",
            "Measure a plan on a dataset, compare versions, score reports.",
        ),
        "replay": Entry(
            f"{_MEASURE}:replay",
            "Judge a run again with today's gates, or ask another model.",
        ),
    },
    "Settings": {
        "config": Entry(f"{_SETUP}:config", "Show what is configured, and where it came from."),
        "schema": Entry(f"{_SETUP}:schema", "Print the JSON Schema of a document."),
        "completion": Entry(f"{_SETUP}:completion", "Print the completion script for a shell."),
    },
}
"""Section -> command -> entry, in the order in which help shows them."""
