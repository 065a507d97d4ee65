"""Looking at a draft: the checkers of a step, each from the cache if nothing has changed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from anyio import to_thread
from pydantic import JsonValue, TypeAdapter, ValidationError

from agent_run.errors import InvalidDocument, Unfit
from agent_run.executors.content.checking import Checker
from agent_run.executors.content.drafts import Draft, nothing_in, read_draft
from agent_run.executors.content.remarks import (
    Check,
    Remark,
    Status,
    blocked,
    digest_of,
    gravest,
)
from agent_run.ports.gate import Cache
from agent_run.recipes.qa.checklist import CheckName

_KEPT: Final = TypeAdapter(Check)
_WEB: Final = ("http:", "https:", "//")
_WORST_FIRST: Final[tuple[Status, ...]] = ("failed", "blocked", "passed")
_TO_TELL: Final = 2.0
"""Seconds that are kept back, so that what is known when time is up can be told."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one checker said, and whether it had to look."""

    name: str
    check: Check
    cached: bool = False


def draft_at(path: Path) -> Draft | str:
    """Return the draft, or the sentence that says why there is none to look at."""
    try:
        draft = read_draft(path)
    except InvalidDocument as error:
        return str(error)
    return nothing_in(draft) or draft


def digest_at(draft: Draft | str) -> str:
    """Return what tells this draft from any other, readable or not."""
    return digest_of("unreadable", draft) if isinstance(draft, str) else draft.digest


def keys_of(
    draft: Draft | str, checkers: Mapping[CheckName, Checker], *, today: date
) -> list[str]:
    """Return for each checker the key that changes when its answer may."""
    if isinstance(draft, str):
        return [digest_at(draft)]
    return [key_of(draft, checker, today=today) for checker in checkers.values()]


def key_of(draft: Draft, checker: Checker, *, today: date) -> str:
    """Return the key under which a check is kept; what the web says is believed for a day."""
    try:
        key = checker.cache_key(draft)
    except Unfit as unfit:  # the check itself will say so
        return digest_of("unfit", str(unfit))
    asks_the_web = not getattr(checker, "offline", True) and any(
        link.target.lower().startswith(_WEB) for link in draft.prose.links
    )
    return digest_of(key, today.isoformat()) if asks_the_web else key


def time_to_look(seconds: float | None, *, model: bool) -> float | None:
    """Return how much of a step's time its checkers have. `None` means no limit.

    A model that is asked after them needs its part.
    """
    if seconds is None:
        return None
    return seconds / 2 if model else seconds - min(_TO_TELL, seconds / 5)


async def looks_at(
    draft: Draft,
    checkers: Mapping[CheckName, Checker],
    cache: Cache,
    *,
    today: date,
    seconds: float | None = None,
) -> list[Look]:
    """Return what each checker says about `draft`, all of them within `seconds`."""
    started, looks = monotonic(), list[Look]()
    for checker in checkers.values():
        left = None if seconds is None else max(0.0, seconds - (monotonic() - started))
        looks.append(await _look(draft, checker, cache, today=today, seconds=left))
    return looks


def combined(looks: Sequence[Look]) -> Check:
    """Return one check for all: as bad as the worst, and as sure as that deserves."""
    checks = [look.check for look in looks]
    if len(checks) == 1:
        return checks[0]
    worst = next(one for one in _WORST_FIRST if any(check.status == one for check in checks))
    sure = [check.confidence for check in checks if check.status == worst]
    return Check(
        status=worst,
        confidence=min(sure) if worst == "passed" else max(sure),
        notes="; ".join(f"{look.name}: {look.check.notes}" for look in looks),
        remarks=tuple(remark for check in checks for remark in check.remarks),
        cache_key=digest_of([check.cache_key for check in checks]),
        whole=all(check.whole for check in checks),
    )


def remarks_json(remarks: Sequence[Remark]) -> list[JsonValue]:
    """Return the remarks as data; as many as a record carries, the gravest."""
    return [asdict(remark) for remark in gravest(remarks)]


async def _look(
    draft: Draft, checker: Checker, cache: Cache, *, today: date, seconds: float | None
) -> Look:
    try:
        key = await to_thread.run_sync(partial(key_of, draft, checker, today=today))
        kept = _read(await to_thread.run_sync(cache.get, f"qa{key}"))
        if kept is not None:
            return Look(checker.name, kept, cached=True)
        check = await checker.check(draft, seconds=seconds)
    except (InvalidDocument, Unfit) as error:
        missing = isinstance(error, Unfit)  # what is not installed may be so next time
        told = blocked(f"{checker.name}.draft", str(error), whole=not missing)
        return Look(checker.name, told)
    if (
        check.whole and check.status != "blocked"
    ):  # what could not be looked at may be looked at next time
        plain: dict[str, Any] = _KEPT.dump_python(check, mode="json")
        await to_thread.run_sync(cache.put, f"qa{key}", plain)
    return Look(checker.name, check)


def _read(value: JsonValue) -> Check | None:
    try:
        return None if value is None else _KEPT.validate_python(value)
    except ValidationError:
        return None  # written by another version: it is found out again
