"""The work of `replay`: what was recorded, before today's gates or another model."""

from typing import Unpack

import anyio
import click

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.asking_again import Wish, put_to
from agent_run.cli.work.door import opened
from agent_run.contract.base import RunId
from agent_run.errors import UnknownRun
from agent_run.evals.replay import Exhibit, Replayed, exhibits
from agent_run.evals.replay import replay as judged_again
from agent_run.gates.cache import NoCache
from agent_run.ledger.views import counted
from agent_run.wiring.site import GATES


def replay(
    speech: Speech,
    *,
    run_id: RunId,
    min_confidence: float | None,
    model: str | None,
    **wish: Unpack[Wish],
) -> int:
    """Judge the records of a run again, or ask its questions again, and say what differs."""
    if model is None:
        _refuse_without_model(wish)
        return _judged(speech, run_id, min_confidence)
    if min_confidence is not None:
        msg = "--min-confidence judges records, --model asks questions: only one of them"
        raise click.UsageError(msg, click.get_current_context())
    return put_to(speech, run_id, model, **wish)


def _refuse_without_model(wish: Wish) -> None:
    given = (
        ("--keep", wish["keep"]),
        ("--max-tokens", wish["max_tokens"]),
        ("--max-cost-usd", wish["max_cost_usd"]),
        ("--min", wish["least"]),
        ("--max", wish["most"]),
    )
    for name, value in given:
        if value:
            msg = f"{name} says something about --model, which is missing"
            raise click.UsageError(msg, click.get_current_context())


def _judged(speech: Speech, run_id: RunId, min_confidence: float | None) -> int:
    with opened(speech) as door:
        pages = door.desk.pages(run_id)
    if not pages:
        msg = f"no run {run_id!r} in this ledger"
        raise UnknownRun(msg)
    found = [_stricter(one, min_confidence) for one in exhibits(pages)]
    again = anyio.run(judged_again, found, GATES, NoCache())
    differs = sum(one.differs for one in again)
    said = f"{counted(len(again), 'verdict')} again, {differs} differ"
    if speech.as_json:
        told = [_as_json(one) for one in again]
        speech.object({"run_id": run_id, "records": told, "differs": differs})
    else:
        rows = [row for one in again for row in _rows(one)]
        if rows:
            speech.table(("TASK", "CLAIM", "GATE", "THEN", "NOW", "WHY"), rows)
        speech.tell(said)
    return Exit.REFUSED if differs else Exit.DONE


def _stricter(exhibit: Exhibit, min_confidence: float | None) -> Exhibit:
    if min_confidence is None:
        return exhibit
    manifest = exhibit.manifest.model_copy(update={"min_confidence": min_confidence})
    return Exhibit(
        task_id=exhibit.task_id,
        claim=exhibit.claim,
        manifest=manifest,
        record=exhibit.record,
        observed=exhibit.observed,
        verdict=exhibit.verdict,
    )


def _rows(one: Replayed) -> list[tuple[str, ...]]:
    mark = "differs" if one.differs else "same"
    whole = (one.task_id, str(one.claim), "(verdict)", one.then, one.now, mark)
    gates = [
        (one.task_id, str(one.claim), gate.gate, gate.then or "", gate.now or "", gate.evidence)
        for gate in one.gates
        if gate.how != "same"
    ]
    return [whole, *gates]


def _as_json(one: Replayed) -> Json:
    return {
        "task_id": one.task_id,
        "claim": one.claim,
        "then": one.then,
        "now": one.now,
        "differs": one.differs,
        "gates": [
            {
                "gate": gate.gate,
                "how": gate.how,
                "then": gate.then,
                "now": gate.now,
                "evidence": gate.evidence,
            }
            for gate in one.gates
        ],
    }
