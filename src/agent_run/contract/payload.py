"""Payloads against their JSON Schema: what is wrong, and which schema it was.

Schemas come from strangers too: nothing is fetched for them, and their patterns run in an
engine that takes linear time.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

import jsonschema_rs
from pydantic import JsonValue

from agent_run.errors import ContractError

_MOST_FAULTS: Final = 20
_LINEAR: Final = jsonschema_rs.RegexOptions()


def payload_faults(value: JsonValue, schema: Mapping[str, JsonValue]) -> list[str]:
    """Return a sentence for each place where `value` breaks `schema`.

    Raises:
        ContractError: `schema` itself is no JSON Schema.
    """
    faults: list[str] = []
    for error in _validator(canonical(schema)).iter_errors(value):
        if len(faults) == _MOST_FAULTS:
            faults.append(f"and more: the first {_MOST_FAULTS} are told")
            break
        place = "".join(f"[{part!r}]" for part in error.instance_path)
        faults.append(f"{place}: {error.message}" if place else error.message)
    return faults


def check_schema(schema: Mapping[str, JsonValue]) -> None:
    """Raise `ContractError` if `schema` is no JSON Schema that can stand alone."""
    _validator(canonical(schema))


def fingerprint(schema: Mapping[str, JsonValue]) -> str:
    """Return a hash that two schemas share exactly when they say the same words."""
    return hashlib.sha256(canonical(schema).encode()).hexdigest()


def canonical(value: JsonValue | Mapping[str, JsonValue]) -> str:
    """Return the one way in which we write a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    try:
        return jsonschema_rs.validator_for(
            schema, retriever=_fetch_nothing, pattern_options=_LINEAR, validate_formats=True
        )
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        said = str(error).splitlines()[0]
        msg = f"the schema is not one that can be used: {said}"
        raise ContractError(msg) from error


def _fetch_nothing(uri: str) -> NoReturn:
    msg = f"{uri!r} would have to be fetched; write the schema in one piece"
    raise ValueError(msg)
