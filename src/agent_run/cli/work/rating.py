"""The work of `eval rubric`: reports scored blind by people, or by a function."""

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.documents import read_file
from agent_run.cli.work.door import configured
from agent_run.cli.work.listening import completed
from agent_run.contract.reading import load
from agent_run.errors import ContractError, InvalidDocument, Unfit
from agent_run.evals import rubric as scoring
from agent_run.evals.results import read_results
from agent_run.evals.rubric import Rating, Rubric, Scorer
from agent_run.ledger.views import counted

_KEY = TypeAdapter(dict[str, str])


def hand_out(
    speech: Speech, *, results: str, rubric: str, csv: str, key: str, seed: str
) -> int:
    """Write the sheet and its key."""
    found = list(read_results(Path(results)).values())
    sheet = scoring.hand_out(found, _rubric(rubric), seed=seed)
    _write(csv, sheet.csv)
    _write(key, json.dumps(sheet.key, indent=1) + "\n")
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


def ask(speech: Speech, *, results: str, rubric: str, scorer: str, out: str) -> int:
    """Let a function score each report."""
    found = list(read_results(Path(results)).values())
    document, function = _rubric(rubric), _scorer(scorer)
    without = sum(not one.report for one in found)
    if without:
        speech.warn(f"{counted(without, 'case')} without a report: not scored")
    ratings = completed(lambda: scoring.ask(found, document, function, rater=scorer), speech)
    return _kept(speech, ratings, out)


def summary(speech: Speech, *, scores: tuple[str, ...]) -> int:
    """Show means, and how far the first two raters agree."""
    raters = {file: _ratings(file) for file in scores}
    means = {file: scoring.means(ratings) for file, ratings in raters.items()}
    pairs = list(raters.values())
    agreed = scoring.agreed(pairs[0], pairs[1]) if len(pairs) > 1 else []
    if speech.as_json:
        told = [
            {"criterion": a.criterion, "both": a.both, "exact": a.exact, "kappa": a.kappa}
            for a in agreed
        ]
        speech.object({"means": means, "agreement": told})
        return Exit.DONE
    rows = [
        (f, name, f"{value:.2f}") for f, found in means.items() for name, value in found.items()
    ]
    speech.table(("SCORES", "CRITERION", "MEAN"), rows)
    for one in agreed:
        share = "" if one.exact is None else f"{one.exact:.0%}"
        beyond = "" if one.kappa is None else f", kappa {one.kappa:.2f}"
        speech.show(f"{one.criterion}: the same on {share} of {one.both}{beyond}")
    return Exit.DONE


def _rubric(file: str) -> Rubric:
    return load(Rubric, read_file(file))


def _scorer(place: str) -> Scorer:
    module, colon, name = place.partition(":")
    if not colon:
        msg = f"scorer {place!r} is not like 'package.module:name'"
        raise ContractError(msg)
    try:
        found: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        msg = f"scorer {place!r} cannot be loaded: {error}"
        raise ContractError(msg) from error
    scorer: Scorer = found
    return scorer


def _kept(speech: Speech, ratings: Sequence[Rating], out: str) -> int:
    _write(out, "".join(rating.model_dump_json() + "\n" for rating in ratings))
    speech.answer(
        {"ratings": len(ratings), "out": out}, [f"{counted(len(ratings), 'rating')} in {out}"]
    )
    return Exit.DONE


def _ratings(file: str) -> list[Rating]:
    lines = [line for line in _read(file).splitlines() if line.strip()]
    try:
        return [Rating.model_validate_json(line) for line in lines]
    except ValidationError as error:
        msg = f"{file}: holds a line that is no rating"
        raise InvalidDocument(msg) from error


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{file}: cannot be read: {error}"
        raise InvalidDocument(msg) from error


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        msg = f"{file!r} cannot be written: {error.strerror}"
        raise Unfit(msg) from error
