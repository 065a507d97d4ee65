"""The work of `qa`: drafts against a checklist, shown as a table and written as reports."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, TypedDict, Unpack

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.listening import completed, transcript
from agent_run.cli.work.qa_report import cell_of, show_report
from agent_run.contract.base import RunId
from agent_run.desk import Desk
from agent_run.engine.telling import to_nobody
from agent_run.errors import ContractError, InvalidDocument
from agent_run.gates.cache import FileCache, NoCache
from agent_run.models.names import parse_model
from agent_run.recipes.asking import open_asker
from agent_run.recipes.catalogue import ChecklistRecipe
from agent_run.recipes.qa.checklist import read_checklist
from agent_run.recipes.qa.example import example_folder, qa_act
from agent_run.recipes.qa.keeping import refresh, write_report
from agent_run.recipes.qa.planning import Wanted
from agent_run.recipes.qa.rendering import FORMATS
from agent_run.recipes.qa.reporting import Report, Verdict, plan_json
from agent_run.recipes.qa.rules import Rules, host_names
from agent_run.recipes.qa.running import (
    Shop,
    check_drafts,
    model_still_asked,
    plans_for,
    take_up,
)
from agent_run.recipes.qa.scoring import read_key, score, score_json, score_lines
from agent_run.recipes.qa.sparing import refuse_overwriting
from agent_run.recipes.qa.wording import VERDICTS
from agent_run.wiring.opening import wall_clock

_CODES: Final[Mapping[Verdict, Exit]] = {
    "pass": Exit.DONE,
    "fail": Exit.FAILED,
    "person": Exit.FOR_A_PERSON,
}


class Asked(TypedDict):
    """What the user may want of any checks."""

    offline: bool
    reports: tuple[str, ...]
    min_confidence: float | None
    dry_run: bool


class Wish(Asked):
    """What the user wants of checks by a checklist."""

    accept: tuple[str, ...]
    accept_list: str | None
    style: str | None
    lexicon: str | None
    allow_hosts: tuple[str, ...]
    model: str | None
    reflect: bool
    fresh: bool
    key: str | None


def qa(speech: Speech, *, drafts: tuple[str, ...], checklist: str, **wish: Unpack[Wish]) -> int:
    """Check the drafts, and say how they stand."""
    places = tuple(_place(name) for name in wish["reports"])
    key = Path(wish["key"]) if wish["key"] else None
    truths = read_key(key) if key else None
    with opened(speech, writes=True, dry_run=wish["dry_run"]) as door:
        wanted = _wanted(door, Path(checklist), wish)
        others = {"checklist": checklist, "key": wish["key"]}
        refuse_overwriting(places, drafts, wanted, others)
        if wish["dry_run"]:
            return _rehearsed(speech, drafts, wanted)
        shop = _shop(door, wanted.model, fresh=wish["fresh"])
        report = completed(lambda: check_drafts(shop, drafts, wanted), speech)
        _write(door, report, places, key=key)
        show_report(speech, report, score(report, truths) if truths is not None else None)
        _tell_where(door, report, places)
    return _CODES[report.status]


def went_on(door: Door, run_id: RunId) -> int:
    """Go on with the checks of one draft, and show its report as it now stands."""
    model = model_still_asked(door.desk.run(run_id), run_id)
    shop = _shop(door, model, fresh=False)
    report = Report((completed(lambda: take_up(shop, run_id), door.speech),))
    show_report(door.speech, report, None)
    _refresh(door, report)
    return _CODES[report.status]


def by_recipe(
    speech: Speech, recipe: ChecklistRecipe, drafts: tuple[str, ...], **asked: Unpack[Asked]
) -> int:
    """Check the drafts against the checklist of a recipe."""
    if not drafts:
        msg = f"recipe {recipe.name!r} needs at least one file to check"
        raise InvalidDocument(msg)
    places = tuple(_place(name) for name in asked["reports"])
    wanted = _of_recipe(recipe, asked)
    refuse_overwriting(places, drafts, wanted, {})
    with opened(speech, writes=True, dry_run=asked["dry_run"]) as door:
        if not asked["offline"]:
            wanted = replace(wanted, model=_usable(door))
        if asked["dry_run"]:
            return _rehearsed(speech, drafts, wanted)
        shop = _shop(door, wanted.model, fresh=False)
        report = completed(lambda: check_drafts(shop, drafts, wanted), speech)
        _write(door, report, places)
        show_report(speech, report, None)
        _tell_where(door, report, places)
    return _CODES[report.status]


def _of_recipe(recipe: ChecklistRecipe, asked: Asked) -> Wanted:
    offline = recipe.rules.offline or asked["offline"]
    return Wanted(
        checklist=recipe.checklist,
        beside=Path(),
        rules=recipe.rules.model_copy(update={"offline": offline}),
        today=wall_clock().date(),
        min_confidence=asked["min_confidence"],
    )


def _write(
    door: Door, report: Report, places: tuple[Path, ...], *, key: Path | None = None
) -> None:
    for place in places:
        write_report(_kept_in(door), place, report, key=key)


def _tell_where(door: Door, report: Report, places: tuple[Path, ...]) -> None:
    for place in places:
        door.speech.tell(f"the report is in {place}")
    _refresh(door, report, but=places)


def _kept_in(door: Door) -> Path:
    return door.settings.state / "qa" / "reports"


def _refresh(door: Door, report: Report, *, but: tuple[Path, ...] = ()) -> None:
    """Keep the report files true that show one of these drafts."""
    runs = {draft.run_id for draft in report.drafts}
    for one in refresh(door.desk, _kept_in(door), runs, but=but):
        if one.left:
            door.speech.warn(f"the report in {one.place} was left as it is: {one.left}")
        else:
            door.speech.tell(f"the report in {one.place} was written again")


def _wanted(door: Door, checklist: Path, wish: Wish) -> Wanted:
    rules = Rules(
        style=_existing("style", wish["style"]),
        lexicon=_existing("lexicon", wish["lexicon"]),
        accept=_words(wish["accept"]),
        accept_list=_existing("accept list", wish["accept_list"]),
        offline=wish["offline"],
        allow_hosts=host_names(wish["allow_hosts"]),
    )
    return Wanted(
        checklist=read_checklist(checklist),
        beside=checklist.parent,
        rules=rules,
        today=wall_clock().date(),
        model=_model(door, wish),
        min_confidence=wish["min_confidence"],
        reflect=wish["reflect"],
    )


def _words(given: tuple[str, ...]) -> tuple[str, ...]:
    for one in given:
        if Path(one).suffix and Path(one).is_file():
            msg = f"accept {one!r} is a file, expected words; --accept-list takes such a file"
            raise InvalidDocument(msg)
    return tuple(word for one in given for word in one.replace(",", " ").split())


def _model(door: Door, wish: Wish) -> str | None:
    if wish["offline"]:
        return None
    if wish["model"] is not None:
        parse_model(wish["model"])
        return wish["model"]
    return _usable(door)


def _usable(door: Door) -> str | None:
    """Return the configured model; a name that is meant for other tools is passed over."""
    name = door.settings.model
    if name is None:
        return None
    try:
        parse_model(name)
    except ContractError as error:
        door.speech.tell(f"no model reads the drafts: {error}")
        return None
    return name


def _shop(door: Door, model: str | None, *, fresh: bool) -> Shop:
    speech, state = door.speech, door.settings.state
    owner = f"{door.settings.owner}-qa"
    ask = None
    if model is not None:
        ask = open_asker(door.desk, door.settings, model)
    return Shop(
        desk=door.desk,
        state=state,
        cache=NoCache() if fresh else FileCache(state / "cache"),
        owner=owner,
        ask=ask,
        tell=transcript(speech, aside=True) if speech.verbose else to_nobody,
        fresh=fresh,
        shared=not door.settings.store_url.startswith("sqlite:"),
        say=speech.tell,
    )


def _rehearsed(speech: Speech, drafts: tuple[str, ...], wanted: Wanted) -> int:
    plans = plans_for(drafts, wanted)
    told = [
        {"draft": one.dossier.name, "run_id": one.run_id, "plan": plan_json(one.dossier.plan)}
        for one in plans
    ]
    lines = [
        f"{one.dossier.name}: {step.id} by {', '.join(step.checks) or 'a person or a model'}"
        for one in plans
        for step in one.dossier.plan.steps
    ]
    speech.answer({"plans": told}, lines)
    speech.tell("a dry run: nothing was checked")
    return Exit.DONE


def _place(name: str) -> Path:
    place = Path(name)
    if place.suffix.lower() not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        msg = f"report {name!r} ends in {place.suffix!r}, expected one of {known}"
        raise InvalidDocument(msg)
    if place.is_dir():
        msg = f"report {name!r} cannot be written: it is a folder"
        raise InvalidDocument(msg)
    if not place.parent.is_dir():
        msg = f"report {name!r} cannot be written: there is no folder {str(place.parent)!r}"
        raise InvalidDocument(msg)
    return place


def _existing(kind: str, name: str | None) -> str | None:
    if name is None:
        return None
    place = Path(name)
    if not place.exists():
        msg = f"{kind} {name!r} is not there"
        raise InvalidDocument(msg)
    return str(place.resolve())


def second_act(speech: Speech, desk: Desk, state: Path) -> Json | None:
    """Show the example drafts being checked, as `demo` does; None where they are not here."""
    folder = example_folder()
    if folder is None:
        speech.tell("the example drafts are not installed here, so they are not checked")
        return None
    act = qa_act(desk, state, folder)
    if not speech.as_json:
        speech.show("", "$ agent-run qa DRAFT... --checklist checklist.yaml --key key.jsonl")
        rows = [
            (Path(draft.name).name, VERDICTS[draft.status], *map(cell_of, draft.steps))
            for draft in act.report.drafts
        ]
        steps = [step.step.id.upper() for step in act.report.drafts[0].steps]
        speech.table(("DRAFT", "STATUS", *steps), rows)
        speech.show("", *score_lines(act.score))
        speech.show(f"asked again      {act.again.cache_hits} of {act.again.steps} reused")
    return {
        "drafts": {Path(one.name).name: one.status for one in act.report.drafts},
        "score": score_json(act.score),
        "again": {"cache_hits": act.again.cache_hits, "steps": act.again.steps},
        "seconds": round(act.seconds, 1),
    }
