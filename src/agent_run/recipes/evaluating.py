"""Drafts as cases of a dataset: what a case names or holds is put through a checklist.

An input is the name of a draft, or an object: `draft` or `text`, the `checklist` where the
recipe has none, and `offline`. Names are relative to the folder of the dataset.
"""

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from anyio import to_thread
from pydantic import JsonValue, ValidationError

from agent_run.contract.base import Contract, Flag
from agent_run.desk import Desk
from agent_run.engine.runs import resume, run_plan
from agent_run.errors import InvalidDocument
from agent_run.evals.cases import EvalCase
from agent_run.evals.running import Errand
from agent_run.gates.cache import FileCache
from agent_run.recipes.asking import open_asker
from agent_run.recipes.catalogue import ChecklistRecipe
from agent_run.recipes.places import write_text
from agent_run.recipes.qa.checklist import Checklist, read_checklist
from agent_run.recipes.qa.planning import RECIPE, Planned, Wanted, plan_for
from agent_run.recipes.qa.rules import Rules
from agent_run.recipes.qa.running import Shop, can_go_on
from agent_run.wiring.opening import wall_clock
from agent_run.wiring.settings import Settings

_LENGTH: Final = 32
_EXPECTED: Final = "expected the name of a draft, or an object with 'draft' or 'text'"


class DraftCase(Contract):
    """What a case says about the draft to be checked."""

    draft: str | None = None
    text: str | None = None
    """The draft itself, instead of its name."""
    checklist: str | None = None
    offline: Flag = False


@dataclass(frozen=True, slots=True)
class OnDrafts:
    """Puts the draft of a case through a checklist, all below the result folder."""

    recipe: ChecklistRecipe | None
    """`None` takes the checklist that the case names."""
    beside: Path
    """The folder of the dataset."""
    folder: Path
    """The result folder."""
    settings: Settings
    model: str | None = None

    def about(self, case: EvalCase) -> JsonValue:
        """Return what changes when the answer to this case may.

        Raises:
            InvalidDocument: The case names no draft and checklist that could be read.
        """
        return self._planned(case).dossier.plan.plan_id

    def is_too_late(self, desk: Desk, errand: Errand) -> bool:
        """Say whether a case was interrupted for so long that its time is over.

        To go on would measure the interruption; what was found is in the cache.
        """
        if not desk.store.runs(run_id=errand.run_id):
            return False
        run = desk.run(errand.run_id)
        return not can_go_on(run, errand.run_id, site_time=wall_clock())

    async def through(self, desk: Desk, errand: Errand) -> None:
        """Bring the checks of one case as far as they go."""
        planned = await to_thread.run_sync(self._planned, errand.case)
        ask = open_asker(desk, self.settings, self.model) if self.model else None
        cache = FileCache(self.folder / "cache")
        shop = Shop(desk, self.folder, cache, owner=self.settings.owner, ask=ask)
        if await to_thread.run_sync(partial(desk.store.runs, run_id=errand.run_id)):
            await resume(shop.site(), errand.run_id, shop.crew())
        else:
            await run_plan(shop.site(), planned.plan, shop.crew(), run_id=errand.run_id)

    def _planned(self, case: EvalCase) -> Planned:
        asked = _read(case)
        checklist, beside, rules = self._checklist(asked)
        wanted = Wanted(
            checklist=checklist,
            beside=beside,
            rules=rules.model_copy(update={"offline": rules.offline or asked.offline}),
            today=wall_clock().date(),
            model=None if asked.offline else self.model,
        )
        if asked.text is None:
            name = asked.draft or ""
            return plan_for(self.beside / name, name, wanted)
        return plan_for(self._written(asked.text), f"{case.case_id}.md", wanted)

    def _checklist(self, asked: DraftCase) -> tuple[Checklist, Path, Rules]:
        if self.recipe is not None:
            if asked.checklist is not None:
                msg = f"it names a checklist, and recipe {self.recipe.name!r} has its own"
                raise InvalidDocument(msg)
            return self.recipe.checklist, self.beside, self.recipe.rules
        if asked.checklist is None:
            msg = f"it names no checklist, which recipe {RECIPE!r} needs"
            raise InvalidDocument(msg)
        place = self.beside / asked.checklist
        return read_checklist(place), place.parent, Rules()

    def _written(self, text: str) -> Path:
        """Return a file with the draft that a case holds, the same for the same text."""
        digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        place = self.folder / "drafts" / f"{digest[:_LENGTH]}.md"
        if not place.exists():
            write_text(place, text)
        return place


def _read(case: EvalCase) -> DraftCase:
    given = {"draft": case.input} if isinstance(case.input, str) else case.input
    try:
        asked = DraftCase.model_validate(given)
    except ValidationError as error:
        places = ", ".join(str(one["loc"][0]) for one in error.errors() if one["loc"])
        msg = f"its input is wrong{f' at {places}' if places else ''}, {_EXPECTED}"
        raise InvalidDocument(msg) from error
    if (asked.draft is None) == (asked.text is None):
        many = "no" if asked.draft is None else "more than one"
        msg = f"its input names {many} draft, {_EXPECTED}"
        raise InvalidDocument(msg)
    return asked
