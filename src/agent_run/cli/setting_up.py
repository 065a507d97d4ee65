"""Declares the commands around the work: demo, init, doctor, config, schema, completion."""

import click

from agent_run.cli.declaring import Group, common_options, works_in

DOCUMENTS = (
    "budget",
    "canary",
    "checklist",
    "claim",
    "dataset",
    "envelope",
    "evidence",
    "finding",
    "lexicon",
    "manifest",
    "notes",
    "orchestration",
    "plan",
    "question",
    "record",
    "routing",
    "rubric",
    "rule",
    "spend",
    "verdict",
)


@works_in("agent_run.cli.demo.story:demo")
@click.option("--keep", is_flag=True, help="Keep the repository and its ledger to look at.")
def demo() -> None:
    """See six executors at one task, of which one can be trusted.

    In a real repository of its own, each works on the same task: one wanders out of scope,
    one edits the tests, one lies, one crashes, one comes too late, one does it well. Needs no
    key and no network.
    """


@works_in("agent_run.cli.work.starting:init")
@click.option("--dry-run", is_flag=True, help="Say what would be written; write nothing.")
def init() -> None:
    """Set up this folder: settings, an example, a ledger.

    What is already there is never overwritten.
    """


@works_in("agent_run.cli.work.doctor:doctor")
def doctor() -> None:
    """Say what is missing here and how to fix it.

    Exits with 3 when something that is needed is missing.
    """


@works_in("agent_run.cli.work.settings:show_settings")
@click.option("--origin", is_flag=True, help="Say where each value came from.")
def show() -> None:
    """Show the settings that hold in this folder."""


config = Group(
    "config",
    commands={"show": show},
    params=common_options(),
    help="Show what is configured, and where it came from.",
)


@works_in("agent_run.cli.work.schemas:schema")
@click.argument("name", required=False, type=click.Choice(DOCUMENTS), metavar="[NAME]")
def schema() -> None:
    """Print the JSON Schema of a document.

    Without NAME, list the documents.
    """


@works_in("agent_run.cli.work.completing:completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion() -> None:
    """Print the completion script for a shell.

    For bash: eval "$(agent-run completion bash)"
    """
