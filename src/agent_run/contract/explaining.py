"""From the errors of a pydantic model to faults that name the line and the key.

A value that may be one of several shapes breaks each of them in another way. Only the shape
that was most likely meant is told about, or all that would have done, in one sentence.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, TypeAlias, get_args

from pydantic import BaseModel, JsonValue, RootModel, ValidationError
from pydantic_core import ErrorDetails

from agent_run.contract.base import Contract
from agent_run.contract.expectations import described, phrase
from agent_run.contract.faults import Broken, Fault, shown
from agent_run.contract.places import Document, Node, Part, dotted, inside, parts_of

_ABOUT_THE_KEY: Final = "[key]"
_BROKEN_RULES: Final = frozenset({"value_error", "assertion_error"})

Branch: TypeAlias = tuple[tuple[Part, ...], str]
"""Where a value may have one of several shapes, and which of them was tried."""


@dataclass(slots=True)
class _Spot:
    """How far a pydantic location leads into the document."""

    node: Node
    value: JsonValue
    type: object
    """The annotation of what should stand here."""
    parts: tuple[Part, ...] = ()
    branch: Branch | None = None
    """The first step that leads to a shape and not to a key. `None` means that none did."""
    about_key: bool = False
    renamed: bool = False
    """The model reads this key under another name, so that the document does not hold it."""


@dataclass(frozen=True, slots=True)
class _Problem:
    spot: _Spot
    expected: str | None = None
    """What would have done. `None` means that `sentence` says it all."""
    sentence: str = ""
    missing: tuple[str, ...] = field(default=())
    """The key that is not there, if that is the problem."""

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.spot.parts + self.missing


def explained(error: ValidationError, *, model: object, document: Document) -> list[Fault]:
    """Return each thing that keeps `document` from being a `model`, which may be any type."""
    details = [one for one in error.errors(include_url=False) if not _follows(one)]
    told: dict[tuple[str, str], Fault] = {}
    for detail in details:
        for fault in _parts_of(detail, model=model, document=document):
            told.setdefault((fault.key, fault.message), fault)
    whole = [detail for detail in details if not _names_its_parts(detail)]
    problems = [_problem(detail, model=model, document=document) for detail in whole]
    for group in _grouped(problems):
        first = group[0]
        line, column = first.spot.node.place
        key = dotted(first.parts)
        fault = Fault(document.source, line, column, key, _message(group))
        told.setdefault((key, fault.message), fault)
    return list(told.values())


def _follows(detail: ErrorDetails) -> bool:
    """Say whether this only follows from other faults: a list is short of its broken items."""
    held = detail["input"]
    if detail["type"] != "too_short" or not isinstance(held, list | tuple):
        return False
    return len(held) >= int(detail["ctx"]["min_length"])


def _names_its_parts(detail: ErrorDetails) -> bool:
    return isinstance(detail.get("ctx", {}).get("error"), Broken)


def _parts_of(detail: ErrorDetails, *, model: object, document: Document) -> Iterator[Fault]:
    """Yield each fault of an error that knows the places of its own faults."""
    error = detail.get("ctx", {}).get("error")
    if not isinstance(error, Broken):
        return
    for inner, message in error.faults:
        start = _Spot(document.lines.root, document.value, model)
        spot = _followed(start, (*detail["loc"], *parts_of(inner)))
        line, column = spot.node.place
        yield Fault(document.source, line, column, dotted(spot.parts), message)


def _problem(detail: ErrorDetails, *, model: object, document: Document) -> _Problem:
    kind, loc = detail["type"], detail["loc"]
    start = _Spot(document.lines.root, document.value, model)
    if kind == "missing":
        spot = _followed(start, loc[:-1])
        name = str(loc[-1])
        wanted = described(_field_type(spot.type, name))
        return _Problem(spot, sentence=f"is missing, expected {wanted}", missing=(name,))
    spot = _followed(start, loc)
    if spot.renamed:
        spot.value = detail["input"]
    if kind == "extra_forbidden":
        parent = _followed(start, loc[:-1])
        known = sorted({name for known in _models(parent.type) for name in _names(known)})
        return _Problem(spot, sentence=_unknown_key(str(loc[-1]), known))
    if kind in _BROKEN_RULES:
        return _Problem(spot, sentence=str(detail["ctx"]["error"]))
    expected = phrase(kind, detail.get("ctx", {}))
    return _Problem(spot, expected, "" if expected else detail["msg"])


def _followed(spot: _Spot, loc: Iterable[Part]) -> _Spot:
    """Return the deepest spot of the document that `loc` leads to."""
    steps = tuple(loc)
    for number, name in enumerate(steps, start=1):
        part, child = _found(spot, name)
        if child is not None:
            spot.value = _within(spot.value, part)
            spot.node, spot.parts = child, (*spot.parts, part)
            spot.type = _field_type(spot.type, name)
        elif part == _ABOUT_THE_KEY:
            spot.about_key = True
        elif number == len(steps) and _is_field(spot, part):
            # A model read another name for this key: it is told by the name that counts.
            spot.parts, spot.type = (*spot.parts, part), _field_type(spot.type, part)
            spot.renamed = True
        else:
            spot.branch = spot.branch or (spot.parts, str(part))
            spot.type = _shape(_field_type(spot.type, name), str(part))
    return spot


def _found(spot: _Spot, part: Part) -> tuple[Part, Node | None]:
    """Return the key that stands for `part` at the spot, and its node if there is one."""
    child = inside(spot.node, part)
    if child is not None or isinstance(part, int):
        return part, child
    others = (name for known in _models(spot.type) for name in _others(known, part))
    there = next((name for name in others if inside(spot.node, name)), part)
    return there, inside(spot.node, there)


def _grouped(problems: list[_Problem]) -> Iterator[list[_Problem]]:
    """Yield the problems that make one sentence together."""
    shapes: dict[tuple[Part, ...], dict[str, list[_Problem]]] = defaultdict(dict)
    for problem in problems:
        if problem.spot.branch is None:
            yield [problem]
        else:
            at, name = problem.spot.branch
            shapes[at].setdefault(name, []).append(problem)
    for at, tried in shapes.items():
        # A shape that was entered is the one that was meant: the rest is no help.
        entered = [found for found in tried.values() if _enters(found, at)]
        if entered:
            yield from ([problem] for problem in min(entered, key=len))
        else:
            yield [problem for found in tried.values() for problem in found]


def _enters(problems: list[_Problem], at: tuple[Part, ...]) -> bool:
    return any(len(problem.parts) > len(at) for problem in problems)


def _message(group: list[_Problem]) -> str:
    sentences = dict.fromkeys(problem.sentence for problem in group if problem.sentence)
    expected = dict.fromkeys(problem.expected for problem in group if problem.expected)
    if not expected:
        return "; ".join(sentences)
    spot = group[0].spot
    subject = f"is {shown(spot.value)}"
    if spot.about_key:
        subject = f"is the key {shown(spot.parts[-1])}"
    elif isinstance(spot.value, list) and any("item" in wanted for wanted in expected):
        subject = f"has {len(spot.value)} items"
    wanted = " or ".join(expected)
    number = isinstance(spot.value, int | float)
    hint = "; put it in quotes" if number and wanted == "a string" else ""
    return f"{subject}, expected {wanted}{hint}"


def _unknown_key(key: str, known: list[str]) -> str:
    nearest = get_close_matches(key, known, n=1)
    if nearest:
        return f"is not a known key; did you mean {nearest[0]!r}?"
    choices = f", expected one of {', '.join(known)}" if known else ""
    return f"is not a known key{choices}"


def _within(value: JsonValue, part: Part) -> JsonValue:
    match value, part:
        case dict(), str():
            return value[part]
        case list() | tuple(), int():
            return value[part]
        case _:
            return value


def _models(annotation: object) -> list[type[BaseModel]]:
    """Return every model that a value of this type may be, or hold in a list or mapping."""
    if isinstance(annotation, type) and issubclass(annotation, RootModel):
        annotation = annotation.model_fields["root"].annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def _others(model: type[BaseModel], field: str) -> tuple[str, ...]:
    return model.OTHER_NAMES.get(field, ()) if issubclass(model, Contract) else ()


def _names(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _field_type(annotation: object, part: Part) -> Any:
    """Return the type of a key; of an item, the type of its list, which names it as well."""
    for model in _models(annotation):
        for name, info in model.model_fields.items():
            if part in {name, info.alias}:
                return info.annotation
    return annotation


def _shape(annotation: object, name: str) -> object:
    return next((model for model in _models(annotation) if model.__name__ == name), annotation)


def _is_field(spot: _Spot, part: Part) -> bool:
    return isinstance(spot.value, dict) and any(
        part in _names(model) for model in _models(spot.type)
    )
