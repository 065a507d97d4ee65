"""The door to a token counter. Counters do not agree with each other, so each has a name."""

from typing import Protocol


class Meter(Protocol):
    """Measures text in tokens."""

    @property
    def name(self) -> str:
        """Which vocabulary it counts by; written beside every number it gives."""
        ...

    def count(self, text: str) -> int:
        """Return how many tokens `text` takes."""
        ...
