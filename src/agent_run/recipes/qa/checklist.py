"""The checklist: what every draft goes through, read from a file into a plan of steps.

A step is `id`, `goal`, `context`, `max_attempts`, `min_confidence`, `time_budget_sec`; a bare
sentence is a goal with the usual limits. Which checker does a step is told by its words, or
by `check`; a goal that no checker knows is left to a model or a person.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from agent_run.contract.base import Contract, Line, Share, TaskId, Whole, first_repeated
from agent_run.contract.reading import load_file

CheckName: TypeAlias = Literal["tone", "compliance", "links", "spelling"]
HostName: TypeAlias = Annotated[
    str,
    StringConstraints(pattern=r"^([^\s/:@*?#\[\]]+|\[[0-9A-Fa-f:.]+\])$", max_length=253),
]
"""A host without scheme, port and path."""

OWN_STEPS: Final = ("qa.reflect", "qa.save", "qa.summarize")
"""Names of the final region, which no step of a checklist may have."""
_WORDS: Final[dict[CheckName, re.Pattern[str]]] = {
    "tone": re.compile(r"\b(tone|voice|brand|style|wording)", re.IGNORECASE),
    "compliance": re.compile(
        r"\b(complian|phrase|legal|regulat|disclaim|forbidden|lexicon)", re.IGNORECASE
    ),
    "links": re.compile(r"\b(links?|urls?|anchors?|hyperlinks?)\b", re.IGNORECASE),
    "spelling": re.compile(r"\b(spell|misspell|typos?\b|orthograph)", re.IGNORECASE),
}
_IDS: Final[dict[CheckName, str]] = {
    "tone": "tone-check",
    "compliance": "compliance-check",
    "links": "link-check",
    "spelling": "spelling-check",
}
_USUAL_TOKENS: Final = 6_000
_USUAL_SECONDS: Final = 240
_USUAL_ATTEMPTS: Final = 10


class Step(Contract):
    """One check, with what it may cost."""

    id: TaskId
    goal: Line
    context: str = Field(default="", max_length=4_000)
    """What to look at besides the draft. Rule files beside the checklist are used by name."""
    max_attempts: Whole = Field(default=2, ge=1, le=100)
    min_confidence: Share = 0.7
    time_budget_sec: Whole = Field(default=45, ge=1)
    check: tuple[CheckName, ...] | None = Field(default=None, exclude=True)
    """Who does it. `None` leaves it to the words of the goal."""
    allow_hosts: tuple[HostName, ...] = Field(default=(), exclude=True)
    """Hosts that links may lead to although they are private, such as an intranet."""

    @model_validator(mode="before")
    @classmethod
    def _take_one_name(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("check"), str):
            return {**value, "check": (value["check"],)}
        return value

    @property
    def checks(self) -> tuple[CheckName, ...]:
        """The checkers that can do this step; empty means that none can."""
        return self.check if self.check is not None else known_checks(self.goal, self.id)


class OverallBudget(Contract):
    """What all steps for one draft may take together."""

    max_attempts: Whole = Field(default=_USUAL_ATTEMPTS, ge=1)
    max_tokens: Whole = Field(default=_USUAL_TOKENS, ge=1)
    time_budget_sec: Whole = Field(default=_USUAL_SECONDS, ge=1)


class _Steps(Contract):
    steps: tuple[Step, ...] = Field(min_length=1, max_length=200)
    overall_budget: OverallBudget = OverallBudget()

    @model_validator(mode="before")
    @classmethod
    def _read_goals(cls, value: Any) -> Any:
        """Let a list of goals stand for the whole, and a sentence for a step."""
        document = {"steps": value} if isinstance(value, list | tuple) else value
        if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
            return document
        steps = _named(document["steps"])
        document = {**document, "steps": steps}
        document.setdefault("overall_budget", _usual_budget(len(steps)))
        return document

    @model_validator(mode="after")
    def _name_each_once(self) -> Self:
        names = [step.id for step in self.steps]
        repeated = first_repeated([*OWN_STEPS, *names])
        if repeated is not None:
            msg = f"step {repeated!r} stands twice, or has the name of a step of our own"
            raise ValueError(msg)
        return self


class Checklist(_Steps):
    """The steps and budgets for every draft. A plan document is one, too."""

    plan_id: str | None = Field(default=None, min_length=1, max_length=200)
    """What a plan document is called. The plan of each draft gets a name of its own."""


class QaPlan(_Steps):
    """The checklist made into the plan for one draft."""

    plan_id: str


def read_checklist(path: Path) -> Checklist:
    """Return the checklist in the file at `path`, YAML or JSON.

    Raises:
        InvalidDocument: It cannot be read, or is none; every fault is named.
    """
    return load_file(Checklist, path)


def known_checks(goal: str, step_id: str = "") -> tuple[CheckName, ...]:
    """Return the checkers whose words stand in the goal, or else in the name of the step."""
    found = tuple(name for name, words in _WORDS.items() if words.search(goal))
    return found or tuple(name for name, words in _WORDS.items() if words.search(step_id))


def _named(steps: list[Any]) -> list[Any]:
    """Return the steps with a name for each bare goal."""
    taken = {step.get("id") for step in steps if isinstance(step, dict)}
    named: list[Any] = []
    for number, step in enumerate(steps, start=1):
        if not isinstance(step, str):
            named.append(step)
            continue
        checks = known_checks(step)
        name = _IDS[checks[0]] if len(checks) == 1 else f"goal-{number}"
        name = f"goal-{number}" if name in taken else name
        taken.add(name)
        named.append({"id": name, "goal": step})
    return named


def _usual_budget(steps: int) -> dict[str, int]:
    # A budget that the steps alone use up would stop honest work.
    return {"max_attempts": max(_USUAL_ATTEMPTS, steps)}
