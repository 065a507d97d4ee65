"""What may stand behind an option: names, durations, text; checked when it is used."""

from importlib import import_module
from typing import Any, Final

import click

_LONGEST: Final = 4_000


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


NAME: Final = Checked("name", "name")
DURATION: Final = Checked("duration", "duration")
TEXT: Final = Text()
