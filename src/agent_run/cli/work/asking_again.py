"""The work of `replay --model`: recorded questions before another model."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypedDict, Unpack

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import opened
from agent_run.cli.work.listening import completed
from agent_run.cli.work.scores import SCORE_HEAD, bar, score_cells, score_json
from agent_run.contract.base import RunId
from agent_run.evals.asking_again import Again, ask_again, by_field, reask_scores
from agent_run.evals.limits import missed, read_limits, refuse_unknown
from agent_run.evals.recorded import Recorded, recorded_calls
from agent_run.ledger.words import counted
from agent_run.wiring.interviewing import Wanted, interview, limited_to

_LONGEST: Final = 60
_WIDEST: Final = 80
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class Wish(TypedDict):
    """Whom to ask, what it may cost, and what is asked of the answers."""

    keep: str | None
    at_once: int
    max_tokens: int | None
    max_cost_usd: float | None
    least: tuple[str, ...]
    most: tuple[str, ...]


def put_to(speech: Speech, run_id: RunId, model: str, **wish: Unpack[Wish]) -> int:
    """Ask `model` what the models of a run were asked, and say what it answers otherwise."""
    limits = read_limits(wish["least"], wish["most"])
    refuse_unknown(limits, reask_scores(()))
    with opened(speech) as door:
        recorded = recorded_calls(door.pages(run_id))
        wanted = Wanted(
            model=model,
            budget=limited_to(wish["max_tokens"], wish["max_cost_usd"]),
            keep=_keep(wish["keep"], door.settings.state, run_id, model),
            at_once=wish["at_once"],
        )
        progress = partial(_progress, speech)
        with interview(door.desk, door.settings, wanted) as asked:
            again = completed(lambda: ask_again(asked, recorded.calls, progress), speech)
    _told(speech, again, recorded, wanted)
    problems = missed(limits, reask_scores(again))
    for problem in problems:
        speech.warn(problem)
    if any(one.refused for one in again):
        return Exit.OVER_BUDGET
    return Exit.FAILED if problems else Exit.DONE


def _keep(wanted: str | None, state: Path, run_id: RunId, model: str) -> Path:
    if wanted is not None:
        return Path(wanted)
    name = _UNSAFE.sub("-", f"{run_id[:_LONGEST]}--{model}")
    return state / "replays" / f"{name}.jsonl"


def _progress(speech: Speech, done: int, of: int, one: Again) -> None:
    speech.tell(f"{bar(done, of)} {one.call.task_id} {one.call.request.step} {one.outcome}")


def _told(speech: Speech, again: Sequence[Again], recorded: Recorded, wanted: Wanted) -> None:
    found = reask_scores(again)
    if speech.as_json:
        speech.object(
            {
                "model": wanted.model,
                "calls": [_as_json(one) for one in again],
                "scores": {name: score_json(score) for name, score in found.items()},
                "fields": {
                    field: {"same": share.hits, "of": share.of}
                    for field, share in by_field(again).items()
                },
                "without_question": list(recorded.without_question),
                "kept": str(wanted.keep),
            }
        )
    else:
        _show(speech, again)
        rows = [score_cells(score) for score in found.values() if score.counted]
        if rows:
            speech.table(SCORE_HEAD, rows)
    _tell_rest(speech, again, recorded, wanted)


def _show(speech: Speech, again: Sequence[Again]) -> None:
    rows = [row for one in again for row in _rows(one)]
    if rows:
        speech.table(("TASK", "CALL", "WHERE", "THEN", "NOW"), rows)
    shares = by_field(again).items()
    told = [(field, f"{share.hits} of {share.of}") for field, share in shares]
    if told:
        speech.table(("FIELD", "SAME"), told)


def _tell_rest(
    speech: Speech, again: Sequence[Again], recorded: Recorded, wanted: Wanted
) -> None:
    silent = len(recorded.without_question)
    if silent:
        speech.warn(f"{counted(silent, 'answer')} without a recorded question: not asked again")
    unpriced = sum(one.answer is not None and one.answer.cost_usd is None for one in again)
    if unpriced:
        speech.warn(f"{counted(unpriced, 'answer')} without a known price: not in the cost")
    refused = [one for one in again if one.refused]
    if refused:
        speech.warn(f"{counted(len(refused), 'question')} not asked: {refused[0].fault}")
    if any(one.answer for one in again):
        speech.tell(f"the answers are kept in {wanted.keep}")
    if not again:
        speech.tell("no model was asked anything in this run")


def _rows(one: Again) -> list[tuple[str, ...]]:
    name = one.call.task_id, one.call.request.step
    if one.outcome in {"same", "not asked"}:
        return []
    if one.fault:
        return [(*name, f"({one.outcome})", one.call.unusable, one.fault)]
    if one.call.unusable:
        return [(*name, f"({one.outcome})", one.call.unusable, "")]
    return [(*name, each.field, _short(each.then), _short(each.now)) for each in one.differing]


def _short(text: str) -> str:
    if len(text) <= _WIDEST:
        return text
    return f"{text[:_WIDEST]}… ({len(text)} characters, whole with --json)"


def _as_json(one: Again) -> Json:
    answer = one.answer
    return {
        "task_id": one.call.task_id,
        "call": one.call.request.step,
        "model_then": one.call.model,
        "outcome": one.outcome,
        "fault": one.fault,
        "fault_then": one.call.unusable,
        "differing": [
            {"field": each.field, "then": each.then, "now": each.now} for each in one.differing
        ],
        "tokens": None if answer is None else answer.usage.tokens,
        "tokens_then": one.call.spent.tokens,
        "cost_usd": None if answer is None or answer.cost_usd is None else str(answer.cost_usd),
        "cost_usd_then": str(one.call.spent.cost_usd),
        "seconds": one.seconds,
        "seconds_then": one.call.seconds,
    }
