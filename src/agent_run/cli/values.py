"""What may stand behind an option: names, durations, numbers, text; checked when used."""

from importlib import import_module
from math import isfinite, nan
from os import fsencode
from typing import Any, Final

import click

MOST: Final = 2**63 - 1
"""The largest whole number that a ledger can hold."""
_LONGEST: Final = 4_000
_LONGEST_NAME: Final = 255
"""Bytes between two slashes."""


class Checked(click.ParamType[Any]):
    """A value that a contract's own type must accept.

    The contract is loaded when a value is there to be checked, so that help stays light.
    """

    def __init__(self, name: str, target: str) -> None:
        self.name = name
        self._target = target

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        checked = import_module("agent_run.cli.work.values").checked
        try:
            return checked(self._target, value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Text(click.ParamType[str]):
    """Text that can be written to a ledger."""

    name = "text"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        text = str(value)
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            self.fail("holds bytes that are not UTF-8", param, ctx)
        if len(text) > _LONGEST:
            self.fail(
                f"is {len(text)} characters long, expected at most {_LONGEST}", param, ctx
            )
        return text


class Place(click.ParamType[str]):
    """The name of a file or folder that a file system can hold."""

    name = "file"

    def __init__(self, *, or_task: bool = False) -> None:
        self._or_task = or_task
        """Whether it may also name a task, which is always text."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        text = str(value)
        if not text:
            self.fail("is empty, expected the name of a file or folder", param, ctx)
        parts = fsencode(text).split(b"/")
        if max(map(len, parts)) > _LONGEST_NAME or sum(map(len, parts)) > _LONGEST:
            told = f"is {len(text)} characters long, which no file name may be"
            self.fail(told, param, ctx)
        return TEXT.convert(text, param, ctx) if self._or_task else text


class Whole(click.IntRange):
    """A whole number within bounds, refused in our own words."""

    def __init__(self, least: int, most: int = MOST) -> None:
        super().__init__(least, most)
        self._least, self._most = least, most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            number = int(value)
        except (ValueError, OverflowError):
            number = None
        if number is None or not self._least <= number <= self._most:
            large = number is not None and number > MOST
            self.fail(f"{value!r} is not {self._expected(whole=large)}", param, ctx)
        return number

    def _expected(self, *, whole: bool) -> str:
        if self._most == MOST and not whole:
            return f"a whole number of at least {self._least}"
        return f"a whole number from {self._least} to {self._most}"

    def _describe_range(self) -> str:
        return f"x>={self._least}" if self._most == MOST else super()._describe_range()


class Number(click.FloatRange):
    """A number within bounds, finite, refused in our own words."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = nan
        if not isfinite(number) or not self._within(number):
            self.fail(f"{value!r} is not {self._expected()}", param, ctx)
        return number

    def _within(self, number: float) -> bool:
        if self.max is not None and number > self.max:
            return False
        least = self.min or 0.0
        return number > least if self.min_open else number >= least

    def _expected(self) -> str:
        if self.max is not None:
            return f"a number from {self.min:g} to {self.max:g}"
        return f"a number {'above' if self.min_open else 'of at least'} {self.min or 0:g}"


NAME: Final = Checked("name", "name")
DURATION: Final = Checked("duration", "duration")
EXECUTOR: Final = Checked("executor", "executor")
TEXT: Final = Text()
PLACE: Final = Place()
TARGET: Final = Place(or_task=True)
SHARE: Final = Number(0, 1)
AT_ONCE: Final = Whole(1, 256)
CLAIM: Final = Whole(1)
