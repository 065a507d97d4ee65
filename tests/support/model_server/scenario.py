"""What the scripted model does: a function from an ask to one action.

Actions are said in the words of the task. `toolbox` puts them into the words of whichever
command line asked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self, TypeAlias

from tests.support.model_server.ask import Ask, Json


@dataclass(frozen=True, slots=True)
class Shell:
    """Run one shell command in the workspace."""

    command: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `old` by `new` in the file at `path`, given from the workspace."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Write:
    """Create a file with this text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """End the work with a text, and with a record where the caller asked for one."""

    text: str = "All done."
    record: Json | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an HTTP error instead of a model's reply."""

    status: int = 500
    message: str = "the scripted model refuses"


Action: TypeAlias = Shell | Edit | Write | Finish | Refuse
Scenario: TypeAlias = Callable[[Ask], "Turns | Action"]


@dataclass(frozen=True, slots=True)
class Turns:
    """A fixed list of actions, one after the other; the last one is repeated."""

    actions: tuple[Action, ...]

    @classmethod
    def of(cls, *actions: Action) -> Self:
        return cls(actions)

    def __call__(self, ask: Ask) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class ByAttempt:
    """Another script for each attempt; attempts without one get that of the last."""

    scripts: Mapping[int, Scenario]

    def __call__(self, ask: Ask) -> Turns | Action:
        return self.scripts[min(ask.attempt, max(self.scripts))](ask)
