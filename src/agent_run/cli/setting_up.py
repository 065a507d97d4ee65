"""Declares the commands around the work: demo, init, doctor, config, schema, completion."""

import click

from agent_run.cli.declaring import common_options, works_in

DOCUMENTS = (
    "budget",
    "claim",
    "envelope",
    "evidence",
    "finding",
    "manifest",
    "notes",
    "plan",
    "question",
    "record",
    "spend",
    "verdict",
)


@works_in("agent_run.cli.demo:demo")
def demo() -> None:
    """Walk one task from post to accepted.

    A claim is lost on the way, and the late owner's work is refused. Everything happens in a
    temporary folder, without a key and without a network.
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


config = click.Group(
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
