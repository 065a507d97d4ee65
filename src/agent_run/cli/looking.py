"""Declares the commands that look and change nothing: status, show, ledger."""

import click

from agent_run.cli.declaring import works_in
from agent_run.cli.values import NAME, TEXT


@works_in("agent_run.cli.work.standing:status")
@click.argument("run_id", type=NAME, required=False, metavar="[RUN]")
@click.option("--all", "every", is_flag=True, help="Every run, not only the newest 20.")
def status() -> None:
    """Show where the tasks stand.

    RUN is a run, or a task whose run is meant.
    """


@works_in("agent_run.cli.work.showing:show")
@click.argument("task", type=TEXT)
@click.option("--diff", is_flag=True, help="Only the diff, all of it.")
@click.option("--transcript", is_flag=True, help="Only what the executor wrote.")
def show() -> None:
    """Show everything about one task.

    TASK is task_id or run_id/task_id; a name that stands in several runs means the newest.
    """


@works_in("agent_run.cli.work.paging:ledger")
@click.argument("what", type=TEXT, required=False, metavar="[TASK|RUN|verify]")
@click.argument("run_id", type=TEXT, required=False, metavar="[RUN]")
@click.option("--follow", "-f", is_flag=True, help="Go on with pages as they are written.")
@click.option("--jsonl", is_flag=True, help="One JSON object for each page.")
def ledger() -> None:
    """Show the pages of the ledger, or verify them.

    Without a name, the pages of every run, oldest run first. A name that is both a task and
    a run means the task; RUN/ with a slash means the run.

    `ledger verify [RUN]` finds every page that was changed, removed or moved, and exits with
    1 if there is one.
    """
