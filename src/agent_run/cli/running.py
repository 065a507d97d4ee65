"""Declares the commands about whole plans: plan, run, resume, advise."""

import click

from agent_run.cli.declaring import DRY_RUN, FENCE, FunctionT, works_in
from agent_run.cli.values import EXECUTOR, NAME, PLACE, SHARE, TEXT, Number, Whole

_COUNT = Whole(1, 10_000)


def _crew(words: FunctionT) -> FunctionT:
    """Add the options about who works, and how many at once."""
    for option in (
        FENCE,
        click.option(
            "--parallel", type=_COUNT, metavar="N", help="At most so many tasks at once."
        ),
        click.option(
            "--owner", type=TEXT, metavar="NAME", help="In whose name tasks are claimed."
        ),
        click.option(
            "--command",
            type=TEXT,
            metavar="CMD",
            help="A shell command for tasks that name no executor.",
        ),
        click.option(
            "--executor",
            type=EXECUTOR,
            metavar="NAME",
            help="Who does the tasks that name nobody.",
        ),
    ):
        words = option(words)
    return words


@works_in("agent_run.cli.work.planning:plan")
@click.argument("objective", type=TEXT)
@click.option("--model", type=TEXT, metavar="NAME", help="Who plans: provider:model.")
@click.option("--into", type=PLACE, default="tasks", metavar="FOLDER", help="Where files go.")
@click.option("--post", is_flag=True, help="Put the plan on the ledger at once.")
@click.option("--run", "run_id", type=NAME, metavar="RUN", help="What the run is called.")
@click.option("--dry-run", is_flag=True, help="Show the plan; write nothing.")
def plan() -> None:
    """Let a model write a plan for review.

    It is checked before you see it: the paths exist, the commands can be started, and no
    task holds code. Nothing is posted unless --post is given, and nothing runs.
    """


@works_in("agent_run.cli.work.running:run")
@click.argument("plan", type=PLACE, metavar="PLAN|RECIPE")
@click.argument("arguments", nargs=-1, type=TEXT, metavar="[ARGUMENT]...")
@click.option("--run", "run_id", type=NAME, metavar="RUN", help="What the run is called.")
@_crew
@click.option("--offline", is_flag=True, help="Of drafts: ask no web page and no model.")
@click.option(
    "--report",
    "reports",
    type=PLACE,
    multiple=True,
    metavar="FILE",
    help="Of drafts: write the report to FILE, .md, .json or .html.",
)
@click.option(
    "--min-confidence", type=SHARE, metavar="X", help="Of drafts: how sure a check must be."
)
@click.option("--dry-run", is_flag=True, help="Check that everything fits; start nothing.")
def run() -> None:
    """Carry a whole plan out.

    PLAN is a file. It is refused before anything is spent if a step has no executor, or if
    what one step gives does not fit what the next one takes.

    RECIPE is documentation-review FILE..., email-qa FILE..., or code-fix COMMAND PATH...
    """


@works_in("agent_run.cli.work.running:resume")
@click.argument("run_id", type=NAME, metavar="RUN")
@_crew
@DRY_RUN
def resume() -> None:
    """Go on with a run from where its ledger stands.

    What was finished is not done again.
    """


@works_in("agent_run.cli.work.advising:advise")
@click.option("--steps", type=_COUNT, help="Actions it takes altogether.")
@click.option("--independent", type=_COUNT, help="Parts that do not need each other.")
@click.option("--specialists", type=_COUNT, help="Kinds of expertise, one needed at a time.")
@click.option("--context", type=_COUNT, metavar="TOKENS", help="What must be known to begin.")
@click.option("--predictability", type=SHARE, help="How much of the way is known, 0 to 1.")
@click.option("--reliability", type=SHARE, help="How often one agent succeeds, 0 to 1.")
@click.option("--correlation", type=SHARE, help="How much failures come together, 0 to 1.")
@click.option("--value", type=Number(0), metavar="USD", help="Worth of a good result.")
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="MODEL=IN/OUT",
    help="Dollars for a million tokens, in and out.",
)
@click.option(
    "--from-run",
    "from_run",
    type=NAME,
    metavar="RUN",
    help="Take the shape from a recorded run, and compare.",
)
def advise() -> None:
    """Say which topology fits a task, at what cost, and why."""
