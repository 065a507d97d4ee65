"""A document that was read, and the place in the text of each of its keys.

Places are kept as a tree beside the value. Dotted paths are made only when asked for: a deep
document with many nodes would otherwise hold many times its own size in paths.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pydantic import JsonValue

from agent_run.contract.faults import Fault, Place

Part: TypeAlias = str | int
"""One step into a document: a key of a mapping, or an index of a list."""

_PLAIN_KEY: Final = re.compile(r"[\w-]+")
_STEP: Final = re.compile(r'\.?([\w-]+)|\[(\d{1,18})\]|\[("(?:[^"\\]|\\.)*+")\]')


@dataclass(slots=True)
class Node:
    """The place of one value, and of what stands inside it; not frozen, to be made fast."""

    place: Place
    children: "dict[str, Node] | list[Node] | None" = None
    """`None` for a value that holds no others."""


class Lines(Mapping[str, Place]):
    """Dotted path -> line and column, for every key and list item of a document."""

    def __init__(self, root: Node) -> None:
        self.root = root

    def __getitem__(self, path: str) -> Place:
        node = self.root
        for part in parts_of(path):
            child = inside(node, part)
            if child is None:
                raise KeyError(path)
            node = child
        return node.place

    def __iter__(self) -> Iterator[str]:
        return (dotted(parts) for parts, _ in walk(self.root))

    def __len__(self) -> int:
        return sum(1 for _ in walk(self.root))


@dataclass(frozen=True, slots=True)
class Document:
    """What a text says, before anybody asked whether it says the right thing."""

    source: str
    value: JsonValue
    lines: Lines
    faults: tuple[Fault, ...] = ()
    """What is wrong with the text itself; nobody may use the value before it is mended."""


def dotted(parts: tuple[Part, ...]) -> str:
    """Return the path that people read: `budget.max_attempts`, `steps[2].id`, `a["b.c"]`."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            path += f".{part}" if path else part
        else:
            path += f"[{json.dumps(part)}]"
    return path


def parts_of(path: str) -> tuple[Part, ...]:
    """Return the steps of a dotted path.

    Raises:
        KeyError: `path` is not one that `dotted` makes.
    """
    parts: list[Part] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise KeyError(path)
        name, index, quoted = found.groups()
        parts.append(name or (int(index) if index else json.loads(quoted)))
        at = found.end()
    return tuple(parts)


def inside(node: Node, part: Part) -> Node | None:
    """Return what stands in `node` at `part`, or None."""
    children = node.children
    if isinstance(children, dict):
        return children.get(part) if isinstance(part, str) else None
    if isinstance(children, list) and isinstance(part, int) and part < len(children):
        return children[part]
    return None


def walk(root: Node) -> Iterator[tuple[tuple[Part, ...], Node]]:
    """Yield every node with its path, in the order of the text."""
    waiting: list[tuple[tuple[Part, ...], Node]] = [((), root)]
    while waiting:
        parts, node = waiting.pop()
        yield parts, node
        within: list[tuple[Part, Node]] = []
        match node.children:
            case dict() as children:
                within = list(children.items())
            case list() as children:
                within = list(enumerate(children))
            case None:
                continue
        waiting.extend(((*parts, part), child) for part, child in reversed(within))


def paths_at(root: Node, places: Sequence[Place]) -> list[str]:
    """Return for each of `places`, in ascending order, the path of what it stands in.

    That is the last key or item that begins there or before.
    """
    paths: list[str] = []
    last: tuple[Part, ...] = ()
    for parts, node in walk(root):
        while len(paths) < len(places) and places[len(paths)] < node.place:
            paths.append(dotted(last))
        if len(paths) == len(places):
            break
        last = parts
    return paths + [dotted(last)] * (len(places) - len(paths))
