"""The eight example drafts: checked twice, scored against their key, in a few seconds.

It is the second act of the demonstration, and the same numbers that the documentation has.
"""

from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import anyio

from agent_run.desk import Desk
from agent_run.gates.cache import FileCache
from agent_run.recipes.qa.checklist import read_checklist
from agent_run.recipes.qa.planning import Wanted
from agent_run.recipes.qa.reporting import Report
from agent_run.recipes.qa.rules import Rules
from agent_run.recipes.qa.running import Shop, check_drafts
from agent_run.recipes.qa.scoring import Score, read_key, score
from agent_run.wiring.opening import wall_clock


@dataclass(frozen=True, slots=True)
class Act:
    """What the drafts got at first, and what was left to do when they were checked again."""

    report: Report
    score: Score
    again: Score
    """The same drafts a second time: nothing has changed, so nothing is checked."""
    seconds: float


def example_folder() -> Path | None:
    """Return where the example drafts lie; None where they are not installed."""
    inside = Path(__file__).with_name("drafts")
    beside = Path(__file__).parents[4] / "examples" / "content-qa"
    return next((one for one in (inside, beside) if (one / "key.jsonl").is_file()), None)


def qa_act(desk: Desk, state: Path, folder: Path) -> Act:
    """Check the drafts in `folder` twice, without network and model, and score them."""
    began = monotonic()
    wanted = Wanted(
        checklist=read_checklist(folder / "checklist.yaml"),
        beside=folder,
        rules=Rules(offline=True),
        today=wall_clock().date(),
    )
    key = read_key(folder / "key.jsonl")
    names = dict.fromkeys(draft for draft, _ in key)
    drafts = [str(folder / name) for name in names]
    shop = Shop(desk, state, FileCache(state / "cache"))

    async def checked() -> Report:
        return await check_drafts(shop, drafts, wanted)

    first, second = anyio.run(checked), anyio.run(checked)
    return Act(first, score(first, key), score(second, key), monotonic() - began)
