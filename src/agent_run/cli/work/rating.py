"""The work of `eval rubric`: reports scored blind by people, by a model, or by a function."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import TypedDict, Unpack

import click
from pydantic import TypeAdapter, ValidationError

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.documents import read_file
from agent_run.cli.work.door import configured, opened
from agent_run.cli.work.listening import completed
from agent_run.cli.work.outputs import write_output
from agent_run.contract.faults import Fault, in_line, refusal
from agent_run.contract.files import text_of
from agent_run.contract.reading import load, read_document
from agent_run.errors import AnswerUnusable, ContractError, InvalidDocument
from agent_run.evals import rubric as scoring
from agent_run.evals.results import CaseResult, read_results
from agent_run.evals.rubric import Rating, Rubric, Scorer
from agent_run.evals.rubric_by_model import scorer_by
from agent_run.ledger.words import counted
from agent_run.wiring.interviewing import Wanted, interview, limited_to
from agent_run.wiring.loading import function_at

_KEY = TypeAdapter(dict[str, str])


def hand_out(
    speech: Speech, *, results: str, rubric: str, csv: str, key: str, seed: str
) -> int:
    """Write the sheet and its key; never over a sheet that somebody may have filled in."""
    for file in (csv, key):
        if Path(file).exists():
            msg = f"{file!r} is there already, expected the name of a new file"
            raise ContractError(msg)
    found = list(read_results(Path(results)).values())
    _warn_of_empty(speech, found)
    sheet = scoring.hand_out(found, _rubric(rubric), seed=seed)
    write_output(csv, sheet.csv)
    write_output(key, json.dumps(sheet.key, indent=1) + "\n")
    speech.answer(
        {"rows": len(sheet.key), "csv": csv, "key": key},
        [f"{counted(len(sheet.key), 'report')} in {csv}; keep {key} from who scores them"],
    )
    return Exit.DONE


def take_in(speech: Speech, *, csv: str, rubric: str, key: str, out: str) -> int:
    """Read a sheet that was filled in."""
    try:
        named = _KEY.validate_json(_read(key))
    except ValidationError as error:
        msg = f"{key}: is not the key of a sheet"
        raise InvalidDocument(msg) from error
    rater = configured(speech).settings.owner
    ratings = scoring.take_in(_read(csv), _rubric(rubric), named, rater=rater, source=csv)
    return _kept(speech, ratings, out)


class Wish(TypedDict):
    """Who scores, and what a model may take for it."""

    scorer: str | None
    model: str | None
    max_tokens: int | None
    max_cost_usd: float | None


def ask(speech: Speech, *, results: str, rubric: str, out: str, **wish: Unpack[Wish]) -> int:
    """Let a model or a function score each report."""
    found = list(read_results(Path(results)).values())
    document = _rubric(rubric)
    with _rater(speech, out, wish) as (rater, function):
        _warn_of_empty(speech, found)
        ratings = completed(lambda: scoring.ask(found, document, function, rater=rater), speech)
    return _kept(speech, ratings, out)


def summary(speech: Speech, *, scores: tuple[str, ...]) -> int:
    """Show means, and how far each two raters agree."""
    raters = {file: _ratings(file) for file in scores}
    means = {file: scoring.means(ratings) for file, ratings in raters.items()}
    agreed = [
        (one, other, found)
        for one, other in combinations(raters, 2)
        for found in scoring.agreed(raters[one], raters[other])
    ]
    if speech.as_json:
        told = [
            {
                "between": [one, other],
                "criterion": found.criterion,
                "both": found.both,
                "exact": found.exact,
                "kappa": found.kappa,
                "apart": found.apart,
            }
            for one, other, found in agreed
        ]
        speech.object({"means": means, "agreement": told})
        return Exit.DONE
    rows = [
        (f, name, f"{value:.2f}") for f, found in means.items() for name, value in found.items()
    ]
    speech.table(("SCORES", "CRITERION", "MEAN"), rows)
    for one, other, found in agreed:
        if found.exact is None:
            speech.show(f"{found.criterion}: {one} and {other} scored no report in common")
            continue
        beyond = "" if found.kappa is None else f", kappa {found.kappa:.2f}"
        said = f"{one} and {other} the same on {found.exact:.0%} of {found.both}{beyond}"
        speech.show(f"{found.criterion}: {said}")
    return Exit.DONE


def _warn_of_empty(speech: Speech, found: Sequence[CaseResult]) -> None:
    without = sum(not one.report for one in found)
    if without:
        speech.warn(f"{counted(without, 'case')} without a report: not scored")


def _rubric(file: str) -> Rubric:
    return load(Rubric, read_file(file))


@contextmanager
def _rater(speech: Speech, out: str, wish: Wish) -> Iterator[tuple[str, Scorer]]:
    """Open who scores; a model's answers are kept beside the scores, so none is paid twice."""
    model, scorer = wish["model"], wish["scorer"]
    if scorer is not None and model is None:
        yield scorer, _scorer(scorer, configured(speech).settings.root)
        return
    if model is None or scorer is not None:
        msg = "one of --model and --scorer is needed, and only one"
        raise click.UsageError(msg, click.get_current_context())
    budget = limited_to(wish["max_tokens"], wish["max_cost_usd"])
    wanted = Wanted(model, budget, Path(f"{out}.calls"), at_once=4)
    with (
        opened(speech) as door,
        interview(door.desk, door.settings, wanted) as interviewed,
    ):
        try:
            yield model, scorer_by(interviewed)
        except AnswerUnusable as error:
            kept = "its answers are kept and not asked for again unless it is removed"
            msg = f"{error}; {str(wanted.keep)!r}: {kept}"
            raise AnswerUnusable(msg, error.answer) from error


def _scorer(place: str, root: Path) -> Scorer:
    scorer: Scorer = function_at(place, called="scorer", root=root)
    return scorer


def _kept(speech: Speech, ratings: Sequence[Rating], out: str) -> int:
    write_output(out, "".join(rating.model_dump_json() + "\n" for rating in ratings))
    speech.answer(
        {"ratings": len(ratings), "out": out}, [f"{counted(len(ratings), 'rating')} in {out}"]
    )
    return Exit.DONE


def _ratings(file: str) -> list[Rating]:
    ratings: list[Rating] = []
    faults: list[Fault] = []
    for number, line in enumerate(_read(file).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            ratings.append(load(Rating, read_document(line, source=file, format="json")))
        except InvalidDocument as error:
            faults += [in_line(fault, number) for fault in error.faults]
    if faults:
        raise refusal(faults)
    return ratings


def _read(file: str) -> str:
    return text_of(Path(file))
