"""The work of `replay`: what was recorded, before today's gates or another model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypedDict, Unpack

import click

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.asking_again import Wish, put_to
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.executing import fenced, warn_of_fence
from agent_run.cli.work.listening import completed
from agent_run.cli.work.scores import bar
from agent_run.contract.base import RunId
from agent_run.contract.manifest import Check
from agent_run.engine.rehearing import Rehearing
from agent_run.evals.replay import Exhibit, Hearing, NoFiles, Replayed, exhibits
from agent_run.evals.replay import replay as judged_again
from agent_run.gates.cache import NoCache
from agent_run.ledger.words import counted
from agent_run.wiring.settings import FenceMode
from agent_run.wiring.site import GATES, Wanted, open_site

_ABOUT_MODEL: Final[Mapping[str, str]] = {
    "keep": "--keep",
    "max_tokens": "--max-tokens",
    "max_cost_usd": "--max-cost-usd",
    "least": "--min",
    "most": "--max",
}
_ABOUT_RECORDS: Final[Mapping[str, str]] = {
    "min_confidence": "--min-confidence",
    "verification": "--verification",
    "fence": "--fence",
}


class Stricter(TypedDict):
    """What is asked of the records that was not asked then."""

    min_confidence: float | None
    verification: tuple[str, ...]
    fence: FenceMode | None


class Wishes(Wish, Stricter):
    """All that can be said about a replay."""

    model: str | None


def replay(speech: Speech, *, run_id: RunId, **wish: Unpack[Wishes]) -> int:
    """Judge the records of a run again, or ask its questions again, and say what differs."""
    model = wish["model"]
    if model is None:
        _refuse(wish, _ABOUT_MODEL, "says something about --model, which is missing")
        return _judged(speech, run_id, wish)
    _refuse(
        wish, _ABOUT_RECORDS, "judges records, and --model asks questions: only one of them"
    )
    asked = Wish(
        keep=wish["keep"],
        at_once=wish["at_once"],
        max_tokens=wish["max_tokens"],
        max_cost_usd=wish["max_cost_usd"],
        least=wish["least"],
        most=wish["most"],
    )
    return put_to(speech, run_id, model, **asked)


def _refuse(wish: Wishes, names: Mapping[str, str], why: str) -> None:
    given = next((flag for key, flag in names.items() if wish.get(key)), None)
    if given is not None:
        msg = f"{given} {why}"
        raise click.UsageError(msg, click.get_current_context())


def _judged(speech: Speech, run_id: RunId, wish: Wishes) -> int:
    with opened(speech) as door:
        found = [_stricter(one, wish) for one in exhibits(door.pages(run_id))]
        hearing = _hearing(door, found, wish)
        progress = partial(_progress, speech)
        again = completed(lambda: judged_again(hearing, found, progress), speech)
    _warn_of_files(speech, found, wish)
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


def _warn_of_files(speech: Speech, found: Sequence[Exhibit], wish: Wishes) -> None:
    without = sum(not one.commit for one in found)
    if wish["verification"] and without:
        verdicts = counted(without, "verdict")
        speech.warn(f"{verdicts} not about an accepted change: --verification was not run")


def _hearing(door: Door, found: Sequence[Exhibit], wish: Wishes) -> Hearing:
    """Return today's gates; a site is opened only if there are files to judge."""
    if not any(one.commit for one in found):
        return Hearing(GATES, NoCache(), NoFiles(), wish["at_once"])
    settings = fenced(door.settings, wish["fence"])
    # What was found then would answer for what is found now, so nothing is cached.
    site = open_site(door.desk, settings, Wanted(cached=False))
    warn_of_fence(door.speech, site)
    return Hearing(site.gates, site.cache, Rehearing(site), wish["at_once"])


def _stricter(exhibit: Exhibit, wish: Wishes) -> Exhibit:
    manifest = exhibit.manifest
    if wish["min_confidence"] is not None:
        manifest = manifest.model_copy(update={"min_confidence": wish["min_confidence"]})
    if wish["verification"] and exhibit.had_files:
        new = tuple(Check(run=command) for command in wish["verification"])
        checks = (*manifest.verification, *new)
        manifest = manifest.model_copy(update={"verification": checks})
    return replace(exhibit, manifest=manifest)


def _progress(speech: Speech, done: int, of: int, one: Replayed) -> None:
    mark = "differs" if one.differs else "same"
    speech.tell(f"{bar(done, of)} {one.task_id} claim {one.claim} {mark}")


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
