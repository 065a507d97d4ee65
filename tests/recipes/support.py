"""A shop of its own for each test: real ledger, real cache, real checkers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from agent_run.desk import Desk
from agent_run.gates.cache import FileCache
from agent_run.recipes.asking import Asker
from agent_run.recipes.qa.checklist import Checklist
from agent_run.recipes.qa.planning import Wanted
from agent_run.recipes.qa.reporting import Report
from agent_run.recipes.qa.rules import Rules
from agent_run.recipes.qa.running import Shop, check_drafts
from agent_run.wiring import open_desk
from agent_run.wiring.opening import wall_clock

CLEAN = "# A kettle\n\nThe kettle boils a litre of water in four minutes.\n"
FLAWED = "# A letter\n\nWe recieved the the letter. Read [more](nowhere.md).\n"
FOUR = ("brand tone", "compliance phrases", "links", "spelling")


@contextmanager
def opened(folder: Path) -> Iterator[Desk]:
    desk = open_desk(f"sqlite:///{folder / 'state' / 'ledger.db'}")
    try:
        yield desk
    finally:
        desk.close()


def draft(folder: Path, name: str, text: str | bytes) -> str:
    place = folder / name
    place.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(place)


def wanted(folder: Path, checklist: Any = FOUR, **more: Any) -> Wanted:
    known = checklist if isinstance(checklist, Mapping) else list(checklist)
    return Wanted(
        checklist=Checklist.model_validate(known),
        beside=folder,
        rules=Rules(offline=True),
        today=wall_clock().date(),
        **more,
    )


def check(
    folder: Path, desk: Desk, drafts: list[str], asked: Wanted, ask: Asker | None = None
) -> Report:
    state = folder / "state"
    shop = Shop(desk, state, FileCache(state / "cache"), ask=ask)
    return anyio.run(check_drafts, shop, drafts, asked)


def outcomes(report: Report) -> dict[str, str]:
    return {step.step.id: step.outcome for step in report.steps}
