"""The report files people asked for, kept true: written again when somebody has decided.

Beside the saved results stands which runs each file shows. A file that somebody changed or
removed since is theirs, and is left alone.
"""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from agent_run.contract.base import Contract, RunId
from agent_run.desk import Desk
from agent_run.errors import AgentRunError, ContractError, InvalidDocument
from agent_run.recipes.places import write_json, write_text
from agent_run.recipes.qa.carrying import is_again
from agent_run.recipes.qa.rendering import rendered
from agent_run.recipes.qa.reporting import Report, draft_report
from agent_run.recipes.qa.scoring import read_key, score

_LENGTH: Final = 16


class Kept(Contract):
    """One report file, and what it shows."""

    place: str
    runs: tuple[RunId, ...]
    key: str | None = None
    """The key of right answers that the report is scored against, if any."""
    digest: str
    """Of what was written last."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What became of a report file that shows a run which has changed."""

    place: str
    left: str = ""
    """Why it was left as it is. Empty means that it was written again."""


def write_report(folder: Path, place: Path, report: Report, *, key: Path | None) -> None:
    """Write the report to `place`, and remember in `folder` which runs it shows.

    Raises:
        ContractError: It cannot be written.
    """
    told = score(report, read_key(key)) if key else None
    runs = tuple(draft.run_id for draft in report.drafts)
    _write(folder, place.resolve(), rendered(report, told, place), runs, key)


def refresh(
    desk: Desk, folder: Path, runs: Collection[RunId], *, but: Collection[Path] = ()
) -> Iterator[Refreshed]:
    """Write every report again that shows one of `runs` and would now read differently.

    Files in `but` are left out, because they were just written.
    """
    written = {str(place.resolve()) for place in but}
    for old in _all_kept(folder):
        kept = _succeeded(old, runs)
        if kept.place in written or not set(kept.runs) & set(runs):
            continue
        try:
            again = _again(desk, folder, kept)
        except AgentRunError as error:
            again = Refreshed(kept.place, left=str(error))
        if again is not None:
            yield again


def _succeeded(kept: Kept, runs: Collection[RunId]) -> Kept:
    """Return what the file should show: of one and the same check, the newest run."""
    newer = (next((new for new in runs if is_again(new, old)), old) for old in kept.runs)
    return kept.model_copy(update={"runs": tuple(newer)})


def _again(desk: Desk, folder: Path, kept: Kept) -> Refreshed | None:
    place = Path(kept.place)
    report = Report(tuple(draft_report(desk, run_id) for run_id in kept.runs))
    key = Path(kept.key) if kept.key else None
    text = rendered(report, score(report, read_key(key)) if key else None, place)
    if _digest(text) == kept.digest:
        return None
    if not place.exists():
        return None  # who removed it does not want it
    if _digest_at(place) != kept.digest:
        return Refreshed(kept.place, left="it was changed by somebody else")
    _write(folder, place, text, kept.runs, key)
    return Refreshed(kept.place)


def _write(
    folder: Path, place: Path, text: str, runs: tuple[RunId, ...], key: Path | None
) -> None:
    kept = Kept(
        place=str(place),
        runs=runs,
        key=str(key.resolve()) if key else None,
        digest=_digest(text),
    )
    try:
        write_text(place, text)
        write_json(_note(folder, kept.place), kept.model_dump(mode="json"))
    except OSError as error:
        msg = f"report {kept.place!r} cannot be written: {error.strerror}"
        raise ContractError(msg) from error


def _all_kept(folder: Path) -> Iterator[Kept]:
    for note in sorted(folder.glob("*.json")):
        try:
            yield Kept.model_validate_json(note.read_bytes())
        except (OSError, ValidationError) as error:
            msg = f"{str(note)!r} does not say which runs a report shows; remove it"
            raise InvalidDocument(msg) from error


def _note(folder: Path, place: str) -> Path:
    return folder / f"{_digest(place)[:_LENGTH]}.json"


def _digest_at(place: Path) -> str:
    try:
        return hashlib.sha256(place.read_bytes()).hexdigest()
    except OSError:
        return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
