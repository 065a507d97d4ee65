"""Declares the commands of execution: execute, verify, apply, rollback, cancel, workers."""

import click

from agent_run.cli.declaring import DRY_RUN, FENCE, FunctionT, works_in
from agent_run.cli.values import AT_ONCE, CLAIM, DURATION, EXECUTOR, NAME, TARGET, TEXT, Whole


def _surroundings(words: FunctionT) -> FunctionT:
    """Add the options about the machine that work is done on."""
    for option in (
        FENCE,
        click.option(
            "--no-cache",
            "cached",
            is_flag=True,
            flag_value=False,
            default=True,
            help="Run every check again, even on what was judged before.",
        ),
        click.option(
            "--dirty",
            type=click.Choice(("carry", "refuse")),
            help="Whether uncommitted changes become part of the base.",
        ),
    ):
        words = option(words)
    return words


def _at_once(words: FunctionT) -> FunctionT:
    return click.option(
        "--at-once",
        type=AT_ONCE,
        default=1,
        show_default=True,
        metavar="N",
        help="How many at the same time.",
    )(words)


@works_in("agent_run.cli.work.executing:execute")
@click.argument("target", type=TARGET, metavar="TASK|FILE")
@click.option("--executor", type=EXECUTOR, metavar="NAME", help="Who does the work.")
@click.option("--command", type=TEXT, metavar="CMD", help="A shell command that does it.")
@click.option("--owner", type=TEXT, metavar="NAME", help="In whose name it is claimed.")
@click.option("--ttl", type=DURATION, metavar="20m", help="How long a claim holds.")
@click.option("--attempts", type=Whole(1), metavar="N", help="At most so many attempts now.")
@click.option("--run", "run_id", type=NAME, metavar="RUN", help="The run of the task.")
@_surroundings
@DRY_RUN
def execute() -> None:
    """Claim a task, do it in a fence, and judge what came of it.

    TASK is task_id or run_id/task_id. FILE is a manifest; it is posted first, unless it
    stands on the ledger already.

    Each line of the transcript is printed as it happens; with --json the answer is one object
    and the transcript goes to stderr.

    Exits with 0 when the work is accepted; 6 when it is over budget; 4 when gates refused
    it, also if a person now has to decide; 7 when it waits for a person; 5 when the claim
    was refused or lost; 1 when it failed or was cancelled.
    """


@works_in("agent_run.cli.work.verifying:verify")
@click.argument("task", type=TEXT)
@_surroundings
@DRY_RUN
def verify() -> None:
    """Judge what was submitted.

    The gates run in a clean copy of the base with only the allowed files of the result.
    Exits as execute does.
    """


@works_in("agent_run.cli.work.by_hand:checkout")
@click.argument("task", type=TEXT)
@click.option("--claim", type=CLAIM, required=True, metavar="N", help="The claim you hold.")
@click.option(
    "--dirty",
    type=click.Choice(("carry", "refuse")),
    help="Whether uncommitted changes become part of the base.",
)
def checkout() -> None:
    """Get a copy of the project to work in by hand.

    Prints the folder. What it holds when you submit under the same claim is what is judged;
    it stays until then.
    """


@works_in("agent_run.cli.work.applying:apply")
@click.argument("task", type=TEXT)
@DRY_RUN
def apply() -> None:
    """Bring an accepted change to the current branch.

    Nothing is applied where uncommitted work or another change stands in the way.
    """


@works_in("agent_run.cli.work.applying:rollback")
@click.argument("task", type=TEXT)
@DRY_RUN
def rollback() -> None:
    """Take an applied change back, by a new commit."""


@works_in("agent_run.cli.work.cancelling:cancel")
@click.argument("name", type=TEXT, metavar="TASK|RUN")
@click.option("--reason", type=TEXT, default="cancelled by request", help="Why.")
@DRY_RUN
def cancel() -> None:
    """Say that a task or a whole run is no longer wanted.

    A name that is both a task and a run means the task; RUN/ with a slash means the run.
    Whoever works on it learns it by the next heartbeat, and its processes are ended.
    """


@works_in("agent_run.cli.work.workers:worker")
@click.option(
    "--executor",
    "executors",
    type=NAME,
    multiple=True,
    metavar="NAME",
    help="Take tasks for this executor; the first also takes those for anybody.",
)
@click.option("--once", is_flag=True, help="End when nothing is left to claim.")
@click.option("--owner", type=TEXT, metavar="NAME", help="In whose name it claims.")
@click.option("--ttl", type=DURATION, metavar="20m", help="How long a claim holds.")
@click.option("--run", "run_id", type=NAME, metavar="RUN", help="Only tasks of this run.")
@click.option("--no-judge", is_flag=True, help="Leave the verdict to another process.")
@click.option("--jsonl", is_flag=True, help="One JSON object for each task that was worked on.")
@_at_once
@_surroundings
def worker() -> None:
    """Claim and do tasks as they come, on one or many machines.

    Ends cleanly on an interrupt: every claim is given back and no process is left.
    """


@works_in("agent_run.cli.work.workers:judge")
@click.option("--once", is_flag=True, help="End when nothing waits for a verdict.")
@click.option("--run", "run_id", type=NAME, metavar="RUN", help="Only tasks of this run.")
@click.option("--jsonl", is_flag=True, help="One JSON object for each verdict.")
@_at_once
@_surroundings
def judge() -> None:
    """Judge records as they are submitted.

    For workers with --no-judge that share this machine's state folder.
    """
