"""What is told to people while work goes on: one line each, as it happens."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Topic: TypeAlias = Literal[
    "claim",
    "fence",
    "base",
    "edit",
    "refused",
    "test",
    "summary",
    "verify",
    "wait",
    "note",
    "demo",
]


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that happened, for a person who watches."""

    topic: Topic
    text: str


Listener: TypeAlias = Callable[[Told], None]


def to_nobody(_told: Told) -> None:
    """Listen to nothing."""
