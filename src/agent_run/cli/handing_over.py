"""Declares the commands of the handoff: check, post, claim, heartbeat, release, submit."""

from collections.abc import Callable

import click

from agent_run.cli.declaring import DRY_RUN, FunctionT, works_in
from agent_run.cli.values import CLAIM, DURATION, NAME, PLACE, TEXT

KINDS = (
    *("manifest", "plan", "orchestration", "routing"),
    *("record", "envelope", "notes", "claim", "verdict"),
)


def _claimed(words: FunctionT) -> FunctionT:
    option = click.option(
        "--claim", type=CLAIM, required=True, metavar="N", help="The claim you were given."
    )
    return option(words)


def _owner(says: str) -> Callable[[FunctionT], FunctionT]:
    return click.option("--owner", type=TEXT, metavar="NAME", help=says)


@works_in("agent_run.cli.work.checking:check")
@click.argument("files", nargs=-1, type=PLACE, required=True, metavar="FILE...")
@click.option("--as", "kind", type=click.Choice(KINDS), help="What the files should be.")
def check() -> None:
    """Report every fault of every file.

    FILE is a manifest, a plan or any other document of a handoff, a folder of them, or - for
    stdin. What it is shows in its keys.
    """


@works_in("agent_run.cli.work.posting:post")
@click.argument("files", nargs=-1, type=PLACE, required=True, metavar="FILE...")
@click.option("--run", "run_id", type=NAME, metavar="RUN", help="The run to post to.")
@DRY_RUN
def post() -> None:
    """Put the tasks of manifests and plans on the ledger.

    All of them or none, in one run: the one that --run names, else the one in which the
    tasks they need stand, else one named after the plan, else after the first task.
    """


@works_in("agent_run.cli.work.claiming:claim")
@click.argument("task", type=TEXT, required=False)
@click.option("--next", "take_next", is_flag=True, help="Take the most urgent task.")
@_owner("Who will do the work.")
@click.option("--ttl", type=DURATION, metavar="20m", help="How long the claim holds.")
@click.option("--run", "run_id", type=NAME, metavar="RUN", help="Only tasks of this run.")
@click.option(
    "--executor",
    "executors",
    type=NAME,
    multiple=True,
    metavar="NAME",
    help="With --next, only tasks for this executor or for anybody.",
)
@DRY_RUN
def claim() -> None:
    """Take the claim check of a task, before any write.

    TASK is task_id or run_id/task_id. The number it prints must be shown with every
    heartbeat, release and submit; work done under an older number is refused.
    """


@works_in("agent_run.cli.work.claiming:heartbeat")
@click.argument("task", type=TEXT)
@_claimed
@click.option("--ttl", type=DURATION, metavar="20m", help="How long the claim holds from now.")
@_owner("Who shows that it lives; the claim's owner by default.")
@DRY_RUN
def heartbeat() -> None:
    """Show that the worker lives.

    The claim on TASK holds for another while; it is never shortened.
    """


@works_in("agent_run.cli.work.claiming:release")
@click.argument("task", type=TEXT)
@_claimed
@click.option("--reason", type=TEXT, default="", help="Why; the next owner can read it.")
@_owner("Who gives it back; the claim's owner by default.")
@DRY_RUN
def release() -> None:
    """Give a claimed task back unfinished.

    The attempt on TASK is not counted.
    """


@works_in("agent_run.cli.work.claiming:submit")
@click.argument("task", type=TEXT)
@_claimed
@click.option(
    "--record",
    "file",
    type=PLACE,
    required=True,
    metavar="FILE",
    help="The record, or - for stdin.",
)
@_owner("Who hands it in; the claim's owner by default.")
@DRY_RUN
def submit() -> None:
    """Hand in the record of the work.

    Exits with 7 when TASK now waits for a person, and with 6 when it is over its budget.
    """
