"""Values that were never text of a file: what is wrong with them, in the words of a file's.

What a model, a setting or another program hands over is checked by the same contracts; nobody
who reads what is wrong should have to know the library that found it.
"""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TypeAlias, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from agent_run.contract.faults import Fault, Place, refusal
from agent_run.contract.places import Document, Lines, Node, Part

ModelT = TypeVar("ModelT", bound=BaseModel)
Placing: TypeAlias = Callable[[tuple[Part, ...]], Place]


def valid(model: type[ModelT], value: object, *, source: str = "") -> ModelT:
    """Return `value` as a `model`.

    Raises:
        InvalidDocument: It is not one; `faults` names every key that is wrong.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = faults_of(error, wanted=model, value=value)
        raise refusal(replace(fault, source=source) for fault in found) from error


def in_words(error: ValidationError, *, wanted: object, value: object) -> str:
    """Return on one line what keeps `value` from being what was `wanted`."""
    return "; ".join(str(fault) for fault in faults_of(error, wanted=wanted, value=value))


def faults_of(
    error: ValidationError, *, wanted: object, value: object, placing: Placing | None = None
) -> list[Fault]:
    """Return each thing that keeps `value` from being what was `wanted`.

    `placing` tells where each part stands, if there is a text that it stands in.
    """
    document = placed(value, placing or (lambda _parts: (1, 1)))
    # Who has nothing to explain does not load what explains.
    explained = import_module("agent_run.contract.explaining").explained
    found: list[Fault] = explained(error, model=wanted, document=document)
    if placing is not None:
        return found
    return [replace(fault, line=None, column=None) for fault in found]


def placed(value: object, placing: Placing) -> Document:
    """Return `value` as a document whose parts stand where `placing` says."""
    plain: JsonValue = value  # type: ignore[assignment]  # only looked at, and as it comes
    return Document("", plain, Lines(_node(value, (), placing)))


def _node(value: object, parts: tuple[Part, ...], placing: Placing) -> Node:
    place = placing(parts)
    match value:
        case dict():
            within = {
                str(key): _node(inner, (*parts, str(key)), placing)
                for key, inner in value.items()
            }
            return Node(place, within)
        case list() | tuple():
            items = [_node(inner, (*parts, at), placing) for at, inner in enumerate(value)]
            return Node(place, items)
        case _:
            return Node(place)
