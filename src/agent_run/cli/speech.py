"""How a command speaks: data to stdout, talk to stderr, and nothing hostile to a terminal.

Every character that is not JSON passes through `visible` here, so that no command can
forget it.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias

from agent_run.cli.visible import visible

Json: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Speech:
    """What the options of every command say about how to answer."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False
    store: str | None = None
    """URL of the ledger to ask. `None` leaves it to the settings."""

    @property
    def to_terminal(self) -> bool:
        return sys.stdout.isatty()

    def tell(self, line: str) -> None:
        """Say something to the person who waits; scripts do not read it."""
        if not self.quiet:
            self.warn(line)

    def warn(self, line: str) -> None:
        """Say something that must be heard even when quiet was asked for."""
        sys.stderr.write(f"agent-run: {visible(line)}\n")

    def show(self, *lines: str) -> None:
        """Write lines of data."""
        for line in lines:
            sys.stdout.write(visible(line) + "\n")

    def answer(self, told: Json, lines: Iterable[str]) -> None:
        """Write `told` if JSON was asked for, else `lines`."""
        if self.as_json:
            self.object(told)
        else:
            self.show(*lines)

    def object(self, told: Json) -> None:
        """Write one JSON object: on one line, unless a person is looking."""
        sys.stdout.write(json.dumps(told, indent=2 if self.to_terminal else None) + "\n")

    def line(self, told: Json) -> None:
        """Write one object of a stream, and let the reader have it at once."""
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table: drawn on a terminal, plain columns elsewhere."""
        seen = [[visible(cell) for cell in row] for row in rows]
        if self.to_terminal:
            drawn = import_module("agent_run.cli.drawing").table
            drawn(head, seen, no_color=self.no_color)
            return
        for line in columns([list(head), *seen]):
            sys.stdout.write(line + "\n")


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows with their cells below each other, two spaces apart."""
    if not rows:
        return []
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
