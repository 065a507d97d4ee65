"""Declares the commands that measure: metrics, trace, eval, replay."""

import click

from agent_run.cli.declaring import FENCE, Group, common_options, works_in
from agent_run.cli.values import AT_ONCE, NAME, PLACE, SHARE, TEXT, Number, Whole

_MAX_TOKENS = click.option(
    "--max-tokens", type=Whole(1), help="Most tokens that all questions may take."
)
_MAX_COST = click.option(
    "--max-cost-usd",
    type=Number(0, min_open=True),
    help="Most dollars that all questions may cost.",
)


@works_in("agent_run.cli.work.measuring:metrics")
@click.option("--run", "run_id", type=NAME, metavar="RUN", help="Only this run.")
@click.option(
    "--since", type=TEXT, metavar="WHEN", help="Only tasks posted since: 7d, 2026-11-01."
)
@click.option("--prometheus", is_flag=True, help="In the text format of Prometheus.")
@click.option("--html", type=PLACE, metavar="FILE", help="Write a page with plots to FILE.")
@click.option("--otlp", is_flag=True, help="Send them where the OTEL_ variables say.")
def metrics() -> None:
    """Show what the ledger says in numbers.

    Budgets against plan, confidence by step with regressions named, escalations and how long
    people took, agreement with people, first-pass acceptance, rework, gate failures, cost.
    """


@works_in("agent_run.cli.work.tracing:trace")
@click.argument("what", type=TEXT, metavar="TASK|RUN")
@click.option("--width", type=Whole(10, 400), help="Width of the bars; else what fits.")
@click.option("--otlp", is_flag=True, help="Send the spans where the OTEL_ variables say.")
@click.option("--content", is_flag=True, help="With --otlp: send what people wrote, too.")
def trace() -> None:
    """Draw when everything about a task happened.

    A name that is both a task and a run means the task; RUN/ with a slash means the run.
    """


@works_in("agent_run.cli.work.replaying:replay")
@click.argument("run_id", type=NAME, metavar="RUN")
@click.option(
    "--min-confidence",
    type=SHARE,
    metavar="SHARE",
    help="Judge as if every task demanded so much confidence.",
)
@click.option(
    "--verification",
    type=TEXT,
    multiple=True,
    metavar="CMD",
    help="A further command that accepted files must pass; may be given several times.",
)
@FENCE
@click.option("--model", type=TEXT, metavar="NAME", help="Ask this model the same questions.")
@click.option("--keep", type=PLACE, metavar="FILE", help="Keep its answers in FILE.")
@_MAX_TOKENS
@_MAX_COST
@click.option("--at-once", type=AT_ONCE, default=4, show_default=True)
@click.option("--min", "least", multiple=True, metavar="SCORE=N", help="Fail below N.")
@click.option("--max", "most", multiple=True, metavar="SCORE=N", help="Fail above N.")
def replay() -> None:
    """Judge a run again with today's gates, or ask another model.

    No executor runs and nothing is written to the ledger. Accepted changes are judged on their
    files again while these are in the repository; what gates found about other files then
    still counts. Exits with 4 when a verdict differs.

    With --model, every question that a model was asked in the run is put to another one, with
    what tools had said by then, and both answers are compared. Answers are kept, so that no
    question is paid for twice. Exits with 1 when a score misses its limit, with 6 when not
    every question could be paid for.
    """


@works_in("agent_run.cli.work.evaluating:check")
@click.argument("dataset", type=PLACE)
def check() -> None:
    """Report every fault of a dataset, with its line."""


@works_in("agent_run.cli.work.evaluating:collect")
@click.option("--run", "run_id", type=NAME, metavar="RUN", help="Only this run.")
@click.option("--decided", is_flag=True, help="Only tasks that a person decided about.")
def collect() -> None:
    """Print recorded tasks as a dataset: their input, and what a person decided.

    A person's decision counts before what the machine came to.
    """


@works_in("agent_run.cli.work.evaluating:run")
@click.argument("dataset", type=PLACE)
@click.option("--plan", type=PLACE, help="The plan each case is put through.")
@click.option(
    "--recipe",
    type=TEXT,
    metavar="NAME",
    help="Or code-fix, documentation-review, email-qa, qa, or package.module:name of a "
    "function that makes a plan of a case's input.",
)
@click.option("--out", type=PLACE, required=True, metavar="FOLDER", help="Result folder.")
@click.option("--at-once", type=AT_ONCE, default=4, show_default=True)
@click.option("--min", "least", multiple=True, metavar="SCORE=N", help="Fail below N.")
@click.option("--max", "most", multiple=True, metavar="SCORE=N", help="Fail above N.")
def run() -> None:
    """Put every case of a dataset through a plan, and score what came out.

    Each case is a run of its own in a ledger of its own below the result folder. What is
    there already is not done again. A plan that changes files works on a copy of the
    project, made once for the result folder. Exits with 1 when a score misses its limit, or
    when cases broke the pipeline and no limit for `errors` is set.
    """


@works_in("agent_run.cli.work.evaluating:show")
@click.argument("results", type=PLACE)
@click.option("--min", "least", multiple=True, metavar="SCORE=N", help="Fail below N.")
@click.option("--max", "most", multiple=True, metavar="SCORE=N", help="Fail above N.")
def show() -> None:
    """Show the scores of an evaluation that was run."""


@works_in("agent_run.cli.work.evaluating:compare")
@click.argument("before", type=PLACE)
@click.argument("after", type=PLACE)
@click.option("--fail-if-worse", is_flag=True, help="Exit with 1 when it became worse.")
def compare() -> None:
    """Compare two evaluations of the same cases, and say whether it is more than chance."""


@works_in("agent_run.cli.work.rating:hand_out")
@click.argument("results", type=PLACE)
@click.option("--rubric", type=PLACE, required=True, help="What is scored, and on which scale.")
@click.option("--csv", type=PLACE, required=True, help="The sheet a person fills in.")
@click.option("--key", type=PLACE, required=True, help="Says which row is which case.")
@click.option("--seed", type=TEXT, default="0", help="Decides the order of the rows.")
def hand_out() -> None:
    """Write reports as a sheet that a person scores without knowing where they are from."""


@works_in("agent_run.cli.work.rating:take_in")
@click.argument("csv", type=PLACE)
@click.option("--rubric", type=PLACE, required=True)
@click.option("--key", type=PLACE, required=True)
@click.option("--out", type=PLACE, required=True, help="Where the scores are written.")
def take_in() -> None:
    """Read a sheet that a person has filled in."""


@works_in("agent_run.cli.work.rating:ask")
@click.argument("results", type=PLACE)
@click.option("--rubric", type=PLACE, required=True)
@click.option("--model", type=TEXT, metavar="NAME", help="The model that scores.")
@click.option("--scorer", type=TEXT, metavar="package.module:name", help="Or a function.")
@click.option("--out", type=PLACE, required=True, help="Where the scores are written.")
@_MAX_TOKENS
@_MAX_COST
def ask() -> None:
    """Let a model, or a function of yours, score each report.

    A model sees the rubric and one report at a time, and nothing else. Its answers are kept
    beside the scores, so that no report is paid for twice.
    """


@works_in("agent_run.cli.work.rating:summary")
@click.argument("scores", type=PLACE, nargs=-1, required=True)
def summary() -> None:
    """Show what was scored, and how far two raters agree."""


@works_in("agent_run.cli.work.canarying:assign")
@click.argument("canary", type=PLACE)
@click.argument("plan", type=PLACE)
def assign() -> None:
    """Print the plan with its low-risk tasks divided between both versions.

    When the ledger says that the new version has passed a limit, it gets nothing more.
    """


@works_in("agent_run.cli.work.canarying:judge")
@click.argument("canary", type=PLACE)
@click.option("--since", type=TEXT, metavar="WHEN", help="Only tasks posted since.")
def judge() -> None:
    """Compare both versions on the ledger, and say whether to promote or roll back.

    Exits with 1 when the new version should be rolled back or has passed a limit.
    """


rubric = Group(
    "rubric",
    commands={"hand-out": hand_out, "take-in": take_in, "ask": ask, "summary": summary},
    params=common_options(),
    help="Score how clear reports are: by a person, blind, by a model, or by a function.",
)
canary = Group(
    "canary",
    commands={"assign": assign, "judge": judge},
    params=common_options(),
    help="Route a share of low-risk work to a new version, and judge it.",
)
evaluate = Group(
    "eval",
    commands={
        "check": check,
        "collect": collect,
        "run": run,
        "show": show,
        "compare": compare,
        "rubric": rubric,
        "canary": canary,
    },
    params=common_options(),
    help="Measure a plan on a dataset, compare versions, score reports.",
)
