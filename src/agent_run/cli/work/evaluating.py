"""The work of `eval`: datasets put through plans, scored and compared."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import click

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.conducting import Ground, known_about, pipeline_of
from agent_run.cli.work.door import configured, opened
from agent_run.cli.work.listening import completed
from agent_run.cli.work.scores import SCORE_HEAD, bar, score_cells, score_json
from agent_run.contract.base import RunId
from agent_run.errors import ContractError, UnknownRun
from agent_run.evals.cases import load_dataset
from agent_run.evals.collecting import collect as collected
from agent_run.evals.comparing import Comparison, Difference
from agent_run.evals.comparing import compare as compared
from agent_run.evals.limits import Limit, missed, read_limits, refuse_unknown
from agent_run.evals.results import CaseResult, read_results
from agent_run.evals.running import Evaluation, evaluate
from agent_run.evals.scoring import scores
from agent_run.ledger.words import counted
from agent_run.wiring.holding import held_alone
from agent_run.wiring.settings import Settings


def check(speech: Speech, *, dataset: str) -> int:
    """Say whether a dataset can be used."""
    cases = load_dataset(Path(dataset))
    steps = sorted({step for case in cases for step in case.expected.steps})
    decided = sum(case.human is not None for case in cases)
    speech.answer(
        {"cases": len(cases), "steps": steps, "human_decisions": decided},
        [f"{counted(len(cases), 'case')}, {decided} decided by a person, steps: {steps}"],
    )
    return Exit.DONE


def collect(speech: Speech, *, run_id: RunId | None, decided: bool) -> int:
    """Print recorded tasks as a dataset."""
    with opened(speech) as door:
        names = [row.run_id for row in reversed(door.desk.store.runs(run_id=run_id))]
        if run_id is not None and not names:
            msg = f"no run {run_id!r} in this ledger"
            raise UnknownRun(msg)
        cases = [
            case
            for name in names
            for case in collected(door.desk.pages(name), decided_only=decided)
        ]
    told = [case.model_dump(mode="json", exclude_defaults=True) for case in cases]
    if speech.as_json:
        speech.object({"cases": told})
    else:
        for case in told:
            speech.line(case)
    speech.tell(counted(len(told), "case"))
    return Exit.DONE


class Wish(TypedDict):
    """What cases are put through, and what is asked of the scores."""

    plan: str | None
    recipe: str | None
    out: str
    at_once: int
    least: tuple[str, ...]
    most: tuple[str, ...]


def run(speech: Speech, *, dataset: str, **wish: Unpack[Wish]) -> int:
    """Put every case through the plan, and score what came out."""
    limits = _limits(wish["least"], wish["most"])
    cases = load_dataset(Path(dataset))
    settings = configured(speech).settings
    if (wish["plan"] is None) == (wish["recipe"] is None):
        msg = "one of --plan and --recipe is needed, and only one"
        raise click.UsageError(msg, click.get_current_context())
    ground = Ground(settings, Path(dataset).absolute().parent, _apart(wish["out"], settings))
    pipeline = pipeline_of(wish["plan"], wish["recipe"], ground)
    evaluation = Evaluation(
        folder=ground.folder,
        pipeline=pipeline.described,
        conduct=pipeline.conduct,
        at_once=wish["at_once"],
        about=known_about(pipeline, cases),
    )

    def progress(done: int, of: int, result: CaseResult) -> None:
        said = f"{result.outcome}" + (f": {result.note}" if result.note else "")
        speech.tell(f"{bar(done, of)} {result.case.case_id} {said}")

    busy = f"another process is evaluating into {wish['out']!r}"
    with held_alone(evaluation.folder / ".lock", otherwise=busy):
        for note in pipeline.prepare():
            speech.warn(note)
        results = completed(lambda: evaluate(evaluation, cases, progress), speech)
    return _told(speech, results, limits)


def _apart(out: str, settings: Settings) -> Path:
    """Return the result folder, which ignores itself in git and so must be its own."""
    if settings.root.resolve().is_relative_to(Path(out).resolve()):
        msg = f"--out {out!r} holds the project itself, expected a folder of its own"
        raise ContractError(msg)
    return Path(out)


def show(speech: Speech, *, results: str, least: tuple[str, ...], most: tuple[str, ...]) -> int:
    """Show the scores of an evaluation."""
    limits = _limits(least, most)
    return _told(speech, list(read_results(Path(results)).values()), limits)


def compare(speech: Speech, *, before: str, after: str, fail_if_worse: bool) -> int:
    """Compare two evaluations of the same cases."""
    found = compared(read_results(Path(before)), read_results(Path(after)))
    if speech.as_json:
        speech.object(_comparison_json(found))
    else:
        rows = [_moved(one) for one in found.differences]
        speech.table(("SCORE", "BEFORE", "AFTER", "95 % OF CHANGE", ""), rows)
        speech.show(found.sentence())
    for side, names in (("first", found.only_before), ("second", found.only_after)):
        if names:
            speech.warn(
                f"{counted(len(names), 'case')} only in the {side} evaluation: left out"
            )
    return Exit.FAILED if fail_if_worse and found.worse else Exit.DONE


def _limits(least: tuple[str, ...], most: tuple[str, ...]) -> tuple[Limit, ...]:
    limits = read_limits(least, most)
    refuse_unknown(limits, scores(()))
    return limits


def _told(speech: Speech, results: Sequence[CaseResult], limits: Sequence[Limit]) -> int:
    found = scores(results)
    problems = missed(limits, found)
    if speech.as_json:
        speech.object(
            {
                "cases": len(results),
                "scores": {name: score_json(score) for name, score in found.items()},
                "missed": problems,
            }
        )
    else:
        speech.table(
            SCORE_HEAD,
            [score_cells(score) for score in found.values() if score.counted],
        )
    _warn_of_prices(speech, results)
    broken = sum(one.outcome == "error" for one in results)
    if broken and not any(limit.score == "errors" for limit in limits):
        problems.append(f"{counted(broken, 'case')} broke the pipeline, see the results")
    for problem in problems:
        speech.warn(problem)
    return Exit.FAILED if problems else Exit.DONE


def _warn_of_prices(speech: Speech, results: Sequence[CaseResult]) -> None:
    unknown = sum(result.unpriced_requests for result in results)
    if unknown:
        speech.warn(f"{counted(unknown, 'request')} without a known price: not in the cost")


def _moved(one: Difference) -> tuple[str, ...]:
    known = one.low is not None and one.high is not None
    interval = f"{one.low:+.3g} to {one.high:+.3g}" if known else "too few cases"
    word = "worse" if one.worse else "better" if one.significant else "may be chance"
    return one.score, f"{one.before:.4g}", f"{one.after:.4g}", interval, word


def _comparison_json(found: Comparison) -> Mapping[str, object]:
    return {
        "cases": found.cases,
        "only_before": list(found.only_before),
        "only_after": list(found.only_after),
        "became_right": list(found.became_right),
        "became_wrong": list(found.became_wrong),
        "mcnemar_p": found.chance,
        "worse": found.worse,
        "says": found.sentence(),
        "differences": [
            {
                "score": one.score,
                "before": one.before,
                "after": one.after,
                "interval": None if one.low is None else [one.low, one.high],
                "significant": one.significant,
                "worse": one.worse,
            }
            for one in found.differences
        ],
    }
