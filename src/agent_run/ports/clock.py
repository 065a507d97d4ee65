"""The door to time and names: both come in as values, and only `wiring` makes them."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def __call__(self) -> datetime:
        """Return the time now, in UTC."""
        ...


class Names(Protocol):
    def __call__(self) -> str:
        """Return a new trace id: 32 hexadecimal digits."""
        ...
