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


def _compared(gives: Any, takes: Any, roots: _Roots, place: str) -> Iterator[str]:
    if not (isinstance(gives, dict) and isinstance(takes, dict)):
        return
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
    yield from _compared(gives.get("items"), takes.get("items"), roots, f"{place}[]")


def _properties(
    gives: dict[str, Any], takes: dict[str, Any], roots: _Roots, place: str
) -> Iterator[str]:
    given, wanted = gives.get("properties"), takes.get("properties", {})
    if not isinstance(given, dict) or not isinstance(wanted, dict):
        return
    for name in takes.get("required", ()):
        if name not in given:
            yield f"{_inside(place, name)} is required, but never given"
    for name in wanted.keys() & given.keys():
        yield from _compared(given[name], wanted[name], roots, _inside(place, name))
    if takes.get("additionalProperties") is False:
        for name in given.keys() - wanted.keys():
            yield f"{_inside(place, name)} is given, but not allowed"


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


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
