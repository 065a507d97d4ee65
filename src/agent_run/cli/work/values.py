"""Checks the values of options by the contracts' own types."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from agent_run.contract.base import DURATION_BOUNDS, Duration, Name
from agent_run.contract.manifest import ExecutorName

_TYPES: Final[Mapping[str, TypeAdapter[Any]]] = {
    "name": TypeAdapter(Name),
    "duration": TypeAdapter(Duration),
    "executor": TypeAdapter(ExecutorName),
}
_EXPECTED: Final = {
    "name": "letters, digits, '-', '_' and single dots, at most 100 characters",
    "duration": "something like '20m', '1h30m' or '45s'",
    "executor": "a name, or 'agent:provider:model' for the built-in agent",
}


def checked(kind: str, value: object) -> object:
    """Return `value` as a `kind`.

    Raises:
        ValueError: It is not one; the message says what was expected.
    """
    try:
        return _TYPES[kind].validate_python(value)
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"]
        if DURATION_BOUNDS in said:
            msg = f"{value!r} is not a duration of {DURATION_BOUNDS}"
            raise ValueError(msg) from error
        article = "an" if kind[0] in "aeiou" else "a"
        msg = f"{value!r} is not {article} {kind}, expected {_EXPECTED[kind]}"
        raise ValueError(msg) from error
