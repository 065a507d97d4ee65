"""What a report may never be written over: everything that it is made from."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agent_run.errors import InvalidDocument
from agent_run.recipes.qa.planning import Wanted
from agent_run.recipes.qa.rules import rules_for


def refuse_overwriting(
    reports: Sequence[Path],
    drafts: Sequence[str],
    wanted: Wanted,
    others: Mapping[str, str | None],
) -> None:
    """Refuse a report in a place where a draft, a rule file or one of `others` is.

    `others` are files by what they are called, such as the checklist.

    Raises:
        InvalidDocument: A report would be written there; nothing was begun.
    """
    read = list(_read(drafts, wanted, others))
    for report in reports:
        for what, place in read:
            if _is_same(report, place) or (place.is_dir() and _lies_in(report, place)):
                where = "lies in" if place.is_dir() else "is"
                msg = f"report {str(report)!r} {where} {what}, expected a place of its own"
                raise InvalidDocument(msg)


def _read(
    drafts: Sequence[str], wanted: Wanted, others: Mapping[str, str | None]
) -> Iterator[tuple[str, Path]]:
    yield from ((f"the draft {name!r}", Path(name)) for name in drafts)
    yield from ((f"the {what} {name!r}", Path(name)) for what, name in others.items() if name)
    rules = (rules_for(step, wanted.beside, wanted.rules) for step in wanted.steps)
    sources = dict.fromkeys(one for each in rules for one in each.sources)
    yield from ((f"the rules {name!r}", Path(name)) for name in sources)


def _is_same(one: Path, other: Path) -> bool:
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and one.samefile(other)


def _lies_in(one: Path, folder: Path) -> bool:
    return one.resolve().is_relative_to(folder.resolve())
