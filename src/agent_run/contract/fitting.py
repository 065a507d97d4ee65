"""Does what one task gives fit what the next one takes? Asked before anything is spent.

Only certain misfits are told: a field that will be missing, a type that can never be right.
What depends on the value is checked when the value is there.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import JsonValue

_NUMBERS: Final = frozenset({"integer", "number"})


def misfits(gives: Mapping[str, JsonValue], takes: Mapping[str, JsonValue]) -> list[str]:
    """Return a sentence for each way in which a value of `gives` can never be a `takes`."""
    return list(_compared(dict(gives), dict(takes), _Roots(dict(gives), dict(takes)), ""))


class _Roots:
    """The two whole schemas, to follow references in, and the pairs already compared."""

    def __init__(self, gives: dict[str, Any], takes: dict[str, Any]) -> None:
        self.gives = gives
        self.takes = takes
        self.seen: set[tuple[str, str]] = set()


def _compared(
    gives: dict[str, Any], takes: dict[str, Any], roots: _Roots, place: str
) -> Iterator[str]:
    pair = (str(gives.get("$ref")), str(takes.get("$ref")))
    if pair != ("None", "None"):
        if pair in roots.seen:
            return
        roots.seen.add(pair)
    gives, takes = _resolved(gives, roots.gives), _resolved(takes, roots.takes)
    given, taken = _types(gives), _types(takes)
    if given and taken and not _overlap(given, taken):
        where = place or "the output"
        yield f"{where} is {_named(given)}, expected {_named(taken)}"
        return
    yield from _properties(gives, takes, roots, place)
    items = (gives.get("items"), takes.get("items"))
    if isinstance(items[0], dict) and isinstance(items[1], dict):
        yield from _compared(items[0], items[1], roots, f"{place}[]")


def _properties(
    gives: dict[str, Any], takes: dict[str, Any], roots: _Roots, place: str
) -> Iterator[str]:
    given = gives.get("properties")
    wanted = takes.get("properties")
    if not isinstance(given, dict):
        return
    for name in takes.get("required", ()):
        if name not in given:
            yield f"{place}.{name}".lstrip(".") + " is required, but never given"
    if isinstance(wanted, dict):
        for name, schema in wanted.items():
            if isinstance(schema, dict) and isinstance(given.get(name), dict):
                inner = f"{place}.{name}".lstrip(".")
                yield from _compared(given[name], schema, roots, inner)
        if takes.get("additionalProperties") is False:
            for name in given:
                if name not in wanted:
                    yield f"{place}.{name}".lstrip(".") + " is given, but not allowed"


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    for _ in range(16):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        found: Any = root
        for part in reference[2:].split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~"), {})
        schema = found if isinstance(found, dict) else {}
    return schema


def _types(schema: dict[str, Any]) -> frozenset[str]:
    """Return the JSON types a value may have; empty if the schema does not say."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return frozenset({kind})
    if isinstance(kind, list):
        return frozenset(kind)
    return frozenset()


def _overlap(given: frozenset[str], taken: frozenset[str]) -> bool:
    return bool(given & taken) or (bool(given & _NUMBERS) and "number" in taken)


def _named(types: frozenset[str]) -> str:
    return " or ".join(sorted(types))
