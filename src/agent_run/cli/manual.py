"""The reference pages, written from the code itself so that they cannot go stale."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from agent_run.cli.app import NAME, cli
from agent_run.cli.declaring import loaded
from agent_run.cli.exits import Exit
from agent_run.cli.menu import MENU
from agent_run.cli.work.schemas import MODELS, described, first_line, schema_of
from agent_run.ledger.events import RunCancelled, RunOpened
from agent_run.ledger.state import LEADS_TO, SETTLED, Status

_WIDTH: Final = 90
_ANY_JSON: Final = "any JSON"
_MEANINGS: Final[Mapping[Exit, str]] = {
    Exit.DONE: "done, or accepted",
    Exit.FAILED: "failed",
    Exit.INVALID: "bad usage or invalid input; no such run or task",
    Exit.UNFIT: "the environment is not fit, or the ledger cannot be used",
    Exit.REFUSED: "a gate refused the work",
    Exit.NOT_YOURS: "the claim was refused or is stale; nothing to claim",
    Exit.OVER_BUDGET: "over budget",
    Exit.FOR_A_PERSON: "waits for a person",
    Exit.INTERRUPTED: "interrupted",
}


def help_pages() -> str:
    """Return the help of every command, section by section."""
    return "\n".join(_help_lines())


def exit_codes() -> str:
    """Return the table of exit codes."""
    return _table(("code", "means"), [(str(code.value), _MEANINGS[code]) for code in Exit])


def state_table() -> str:
    """Return the state machine: each event, where it may happen and where it leads."""
    rows = [
        (
            f"`{event.model_fields['kind'].default}`",
            first_line(event),
            _statuses(move.before) or "(no task yet)",
            _statuses(move.after) or "(stays)",
        )
        for event, move in LEADS_TO.items()
    ]
    rows += [
        (f"`{event.model_fields['kind'].default}`", first_line(event), "(the run)", "(the run)")
        for event in (RunOpened, RunCancelled)
    ]
    return _table(("event", "what happened", "before", "after"), rows)


def status_table() -> str:
    """Return each status and whether anything can still happen in it."""
    rows = [(f"`{status}`", "yes" if status in SETTLED else "no") for status in Status]
    return _table(("status", "settled"), rows)


def schema_pages() -> str:
    """Return the keys of every document."""
    parts: list[str] = []
    told = {_named(loaded(target).__name__) for target in MODELS.values()}
    for name in MODELS:
        schema: Mapping[str, Any] = schema_of(name)
        parts.append(f"## {name}\n{described(name)}\n\n{_keys(schema)}")
        for inner, part in schema.get("$defs", {}).items():
            if "properties" not in part or _named(inner) in told:
                continue
            told.add(_named(inner))
            about = str(part.get("description", "")).partition("\n")[0]
            parts.append(f"### {_named(inner)}\n{about}\n\n{_keys(part)}")
    return "\n\n".join(parts)


def _keys(schema: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = [
        (f"`{key}`", _type(field), "required" if key in required else _default(field))
        for key, field in schema["properties"].items()
    ]
    return _table(("key", "type", "default"), rows)


def _named(model: str) -> str:
    """Return the name of a part as people write it: `OverallBudget` is `overall budget`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model).lower()


def _help_lines() -> Iterator[str]:
    root = click.Context(cli, info_name=NAME, terminal_width=_WIDTH)
    yield from _block(cli.get_help(root))
    for section, entries in MENU.items():
        yield f"## {section}"
        for name in entries:
            command = cli.get_command(root, name)
            if command is not None:
                yield from _command_lines(name, command, root)


def _command_lines(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=_WIDTH)
    yield f"### {name}" if parent.parent is None else f"#### {name}"
    yield from _block(command.get_help(context))
    if isinstance(command, click.Group):
        for inner, one in command.commands.items():
            yield from _command_lines(inner, one, context)


def _block(text: str) -> Iterator[str]:
    yield "```text"
    yield text.rstrip()
    yield "```"
    yield ""


def _statuses(found: frozenset[Status]) -> str:
    if found == frozenset(Status):
        return "any"
    if found == frozenset(Status) - SETTLED:
        return "any that is not settled"
    return ", ".join(status for status in Status if status in found)


def _type(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        name = _named(str(field["$ref"]).rpartition("/")[2])
        return _ANY_JSON if name == "json value" else name
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(each) for each in field["anyOf"]))
    if "enum" in field:
        return ", ".join(f"`{choice}`" for choice in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    kind = str(field.get("type", _ANY_JSON))
    if kind == "array":
        return f"list of {_type(field.get('items', {}))}"
    return {"object": "mapping"}.get(kind, kind)


def _default(field: Mapping[str, Any]) -> str:
    if "default" not in field:
        return ""
    default = field["default"]
    return "its own defaults" if isinstance(default, dict) else f"`{json.dumps(default)}`"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines: list[Sequence[str]] = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell or " " for cell in line) + " |" for line in lines)
