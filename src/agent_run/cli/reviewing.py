"""Declares the person's side: inbox and review."""

import click

from agent_run.cli.declaring import DRY_RUN, works_in
from agent_run.cli.values import TEXT


@works_in("agent_run.cli.work.inbox:inbox")
def inbox() -> None:
    """Show what waits for a person, and what to type next."""


@works_in("agent_run.cli.work.reviewing:review")
@click.argument("task", type=TEXT)
@click.option("--approve", is_flag=True, help="Accept the work, or let it begin.")
@click.option("--reject", type=TEXT, metavar="REASON", help="Refuse the work.")
@click.option("--ask", type=TEXT, metavar="TEXT", help="Send the work back with a question.")
@click.option(
    "--answer", type=TEXT, metavar="TEXT", help="Answer a question; JSON is read as JSON."
)
@click.option(
    "--widen", type=TEXT, multiple=True, metavar="GLOB", help="Allow more paths to be written."
)
@click.option("--because", type=TEXT, metavar="TEXT", help="With --approve: why.")
@click.option("--again", is_flag=True, help="With --reject: let it be tried once more.")
@click.option("--as", "owner", type=TEXT, metavar="NAME", help="Who decides.")
@DRY_RUN
def review() -> None:
    """Look at work that waits for a person, and decide.

    Without a decision it shows the question, what the gates found, the diff and the end of
    the transcript.
    """
