"""What every strict reader shares: limits, and the one builder of values.

The YAML and the JSON reader only tell the builder what comes next in the text. Whatever holds
for both (keys, depth, size, characters) is checked here, once.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pydantic import JsonValue

from agent_run.contract.faults import Findings, Place, shown
from agent_run.contract.places import Node, Part, dotted

CONTROL: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
"""Control characters but tab and line ends, as the inside of a regular expression's set."""
_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE: Final = "\u200b\u2028\u2029\u2060\ufeff"
_UNFIT_TEXT: Final = re.compile(f"[{CONTROL}\ud800-\udfff]")
_UNFIT_KEY: Final = re.compile(f"[{CONTROL}\t\n\r\ud800-\udfff{_BIDI}{_INVISIBLE}]")
_BIDI_KEY: Final = re.compile(f"[{_BIDI}]")

_LARGEST: Final = 2**63 - 1
_MOST_DIGITS: Final = 19
_LONGEST_NUMBER: Final = 100

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """How large a document may be before reading it is refused."""

    max_bytes: int = 1_048_576
    max_depth: int = 32
    """Lists and mappings within each other, the outermost included."""
    max_nodes: int = 100_000
    """Values of every kind; keys are not counted."""
    max_key_length: int = 1_000
    max_faults: int = 100
    """After so many faults the reading stops and says so."""


@dataclass(slots=True)
class _Frame:
    """A list or mapping that is still open."""

    value: dict[str, JsonValue] | list[JsonValue]
    node: Node
    key_place: Place
    key: str | None = None
    """In a mapping, the key whose value comes next. `None` means that a key comes next."""
    is_key: bool = False
    """This list or mapping stands where a key should; it is read only for its faults."""
    seen: dict[str, Place] = field(default_factory=dict)
    """Keys in normal form, and where each stands first."""


class Builder:
    """Takes the parts of a document in the order of the text and makes its value."""

    def __init__(self, findings: Findings, limits: ReadingLimits) -> None:
        self.findings = findings
        self.value: JsonValue = None
        self.root: Node | None = None
        """`None` until a value began."""
        self._limits = limits
        self._frames: list[_Frame] = []
        self._nodes = 0

    @property
    def expects_key(self) -> bool:
        """Whether the next part of the text is a key of a mapping."""
        frames = self._frames
        return bool(frames) and isinstance(frames[-1].value, dict) and frames[-1].key is None

    @property
    def path(self) -> str:
        """The dotted path of the value that comes next, or of the open list or mapping."""
        parts: list[Part] = []
        for frame in self._frames:
            if isinstance(frame.value, list):
                parts.append(len(frame.value))
            elif frame.key is not None:
                parts.append(frame.key[:_LONGEST_NUMBER])
        return dotted(tuple(parts))

    def fault(self, place: Place, message: str) -> None:
        """Write down a fault of the value that comes next."""
        self.findings.add(place, key=self.path, message=message)

    def open(self, value: dict[str, JsonValue] | list[JsonValue], place: Place) -> None:
        """Begin a mapping or list; `value` is a new empty one."""
        if len(self._frames) >= self._limits.max_depth:
            told = f"is nested deeper than {self._limits.max_depth} levels"
            self.findings.stop(place, key=self.path, message=told)
        as_key = self.expects_key
        if as_key:
            self.fault(place, f"has {_kind(value)} as a key, expected a string")
        within: dict[str, Node] | list[Node] = {} if isinstance(value, dict) else []
        node = self._node(place, within)
        self._frames.append(_Frame(value, node, place, is_key=as_key))

    def close(self) -> None:
        """End the mapping or list that was opened last."""
        closed = self._frames.pop()
        if closed.is_key:
            self._frames[-1].key = "?"
            self._frames[-1].key_place = closed.node.place
        else:
            self._settle(closed.value)

    def scalar(self, value: Scalar, place: Place) -> None:
        """Take a key or a value that holds no others."""
        if self.expects_key:
            self._take_key(value, place)
            return
        if isinstance(value, str):
            unfit = _UNFIT_TEXT.search(value)
            if unfit is not None:
                self.fault(place, f"holds {character(unfit[0])}, expected text")
        self._node(place, None)
        self._settle(value)

    def number(self, digits: str, place: Place) -> None:
        """Take a number, as it is written."""
        self.scalar(self._number(digits, place), place)

    def _number(self, digits: str, place: Place) -> int | float:
        if digits.lstrip("-+").isdigit():
            if len(digits.lstrip("-+0")) <= _MOST_DIGITS:
                whole = int(digits)
                if -_LARGEST - 1 <= whole <= _LARGEST:
                    return whole
            self.fault(place, f"is {shown(digits)}, expected an integer of at most 64 bits")
            return 0
        if len(digits) > _LONGEST_NUMBER:
            told = f"is {shown(digits)}, expected at most {_LONGEST_NUMBER} characters"
            self.fault(place, f"{told} of a number")
            return 0.0
        number = float(digits)
        if number in {float("inf"), float("-inf")}:
            self.fault(place, f"is {digits}, expected a number of at most 64 bits")
        return number

    def _take_key(self, value: Scalar, place: Place) -> None:
        frame = self._frames[-1]
        if not isinstance(value, str):
            told = f"has the key {shown(value)}, expected a string; put it in quotes"
            self.fault(place, told)
        key = value if isinstance(value, str) else shown(value)
        self._check_key(key, place)
        # Two keys that look the same are the same key, however their accents are encoded.
        same = unicodedata.normalize("NFC", key)
        first = frame.seen.setdefault(same, place)
        frame.key, frame.key_place = key, place
        if first is not place:
            self.fault(place, f"stands twice, first in line {first[0]}, expected each key once")

    def _check_key(self, key: str, place: Place) -> None:
        longest = self._limits.max_key_length
        if len(key) > longest:
            told = f"has the key {shown(key)}, expected at most {longest} characters"
            self.fault(place, told)
        unfit = _UNFIT_KEY.search(key)
        if unfit is not None:
            found = character(unfit[0])
            self.fault(place, f"has {found} in the key {shown(key)}, expected plain text")

    def _node(self, place: Place, within: dict[str, Node] | list[Node] | None) -> Node:
        """Note where the value that comes next stands: where its key does, if it has one."""
        self._nodes += 1
        if self._nodes > self._limits.max_nodes:
            told = f"is value number {self._nodes}, expected at most {self._limits.max_nodes}"
            self.findings.stop(place, key=self.path, message=f"{told} in one document")
        if not self._frames:
            self.root = Node(place, within)
            return self.root
        frame = self._frames[-1]
        match frame.node.children:
            case dict() as children if frame.key is not None:
                node = Node(frame.key_place, within)
                children[frame.key] = node
            case list() as children:
                node = Node(place, within)
                children.append(node)
            case _:
                node = Node(place, within)
        return node

    def _settle(self, value: JsonValue) -> None:
        """Put a value that is complete where it belongs."""
        if not self._frames:
            self.value = value
            return
        frame = self._frames[-1]
        if isinstance(frame.value, list):
            frame.value.append(value)
        elif frame.key is not None:
            frame.value[frame.key] = value
            frame.key = None


def _kind(value: dict[str, JsonValue] | list[JsonValue]) -> str:
    return "a mapping" if isinstance(value, dict) else "a list"


def character(found: str) -> str:
    """Return what a message calls a character that text should not hold."""
    if found == "\x00":
        kind = "the NUL character"
    elif "\ud800" <= found <= "\udfff":
        kind = "half a surrogate pair"
    elif found == "\ufeff":
        kind = "a byte order mark"
    elif _BIDI_KEY.fullmatch(found):
        kind = "a character that turns the direction of text"
    elif found in "\u200b\u2060":
        kind = "an invisible character"
    elif found in "\u2028\u2029":
        kind = "a line separator"
    elif found in "\ufffe\uffff":
        kind = "a code point that is no character"
    else:
        kind = "the control character"
    return f"{kind} U+{ord(found):04X}"
