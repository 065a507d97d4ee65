"""Whether two answers to one question come to the same.

Two models never use the same words. Where the schema of an answer has fields that choose (an
enum, a constant, true or false), these are compared and prose is not; without any such field
the whole answer is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agent_run.contract.payload import canonical
from agent_run.ports.model import ModelAnswer, ModelRequest, ToolCall

_MISSING: Final = "(nothing)"


@dataclass(frozen=True, slots=True)
class Compared:
    """One thing that both answers say."""

    field: str
    """Where it stands, with `[]` for any place in a list."""
    then: str
    now: str

    @property
    def same(self) -> bool:
        return self.then == self.now


def compare(request: ModelRequest, then: ModelAnswer, now: ModelAnswer) -> tuple[Compared, ...]:
    """Return what is told apart, with what each answer says there."""
    if then.calls or now.calls:
        return tuple(_tools(request, then.calls, now.calls))
    if request.output_schema is None:
        return (Compared("text", then.text.strip(), now.text.strip()),)
    return tuple(_values("output", then.output, now.output, request.output_schema))


def _tools(
    request: ModelRequest, then: Sequence[ToolCall], now: Sequence[ToolCall]
) -> Iterator[Compared]:
    yield Compared("tools", _named(then), _named(now))
    if _named(then) != _named(now):
        return
    schemas = {offer.name: offer.parameters for offer in request.tools}
    for before, after in zip(then, now, strict=True):
        schema = schemas.get(before.name, {})
        yield from _values(before.name, before.arguments, after.arguments, schema)


def _named(calls: Sequence[ToolCall]) -> str:
    return ", ".join(call.name for call in calls) or _MISSING


def _values(
    name: str, then: JsonValue, now: JsonValue, schema: dict[str, JsonValue]
) -> Iterator[Compared]:
    before, after = dict(_choices(then, schema, schema)), dict(_choices(now, schema, schema))
    if not before and not after:
        yield Compared(name, canonical(then), canonical(now))
        return
    for path in {**before, **after}:
        field = name + "".join("[]" if isinstance(part, int) else f".{part}" for part in path)
        yield Compared(field, before.get(path, _MISSING), after.get(path, _MISSING))


def _choices(
    value: JsonValue,
    schema: JsonValue,
    root: Mapping[str, JsonValue],
    path: tuple[str | int, ...] = (),
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield where in `value` something was chosen, and what."""
    branches = list(_branches(schema, root, set()))
    if any(_chooses(branch) for branch in branches):
        yield path, canonical(value)
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _choices(inner, _inside(branches, "properties", key), root, (*path, key))
    if isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _choices(inner, _inside(branches, "items"), root, (*path, place))


def _chooses(schema: Mapping[str, JsonValue]) -> bool:
    return "enum" in schema or "const" in schema or schema.get("type") == "boolean"


def _inside(schemas: Sequence[Mapping[str, JsonValue]], *keys: str) -> JsonValue:
    for schema in schemas:
        found: JsonValue = dict(schema)
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if found is not None:
            return found
    return {}


def _branches(
    schema: JsonValue, root: Mapping[str, JsonValue], seen: set[str]
) -> Iterator[Mapping[str, JsonValue]]:
    """Yield the schema itself and all that it may stand for; a name is followed once."""
    if not isinstance(schema, dict):
        return
    yield schema
    name = schema.get("$ref")
    if isinstance(name, str) and name.startswith("#/") and name not in seen:
        target = _inside([root], *name[2:].split("/"))
        seen.add(name)
        yield from _branches(target, root, seen)
    for kind in ("anyOf", "oneOf", "allOf"):
        several = schema.get(kind)
        for one in several if isinstance(several, list) else ():
            yield from _branches(one, root, seen)
