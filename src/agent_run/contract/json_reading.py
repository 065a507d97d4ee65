"""Strict JSON: the standard's grammar and nothing beyond it.

No comments, no trailing commas, no `NaN`. It is read by a loop, not by recursion, so that the
depth of a hostile text is bounded by the builder and never by the stack.
"""

import json
import re
from typing import Final, NoReturn

from agent_run.contract.building import Builder
from agent_run.contract.decoding import line_starts, place_at
from agent_run.contract.faults import Place, shown

_BLANKS: Final = frozenset(" \t\n\r")
_SPACE: Final = re.compile(r"[ \t\n\r]*+")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?")
_WORD: Final = re.compile(r"[^\s,:\[\]{}\"]{1,200}")
_WORDS: Final = {"true": True, "false": False, "null": None}
_NOT_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_STRING: Final = json.JSONDecoder()
_BROKEN_STRING: Final = (
    ("Unterminated", "has a string without its closing quote"),
    ("Invalid control", "has a line break or tab in a string, expected '\\n' or '\\t'"),
    ("Invalid \\escape", "has an unknown escape in a string, expected one that JSON knows"),
    ("Invalid \\u", "has an incomplete '\\u' escape in a string, expected four hex digits"),
)


def read_json(text: str, builder: Builder) -> None:
    """Hand the one JSON value that `text` holds to `builder`, part by part.

    Raises:
        InvalidDocument: `text` is no JSON, or is larger or deeper than allowed.
    """
    scanner = _Scanner(text, builder)
    scanner.value()
    while scanner.closers:
        scanner.after_value()
    scanner.end()


class _Scanner:
    def __init__(self, text: str, builder: Builder) -> None:
        self.closers: list[str] = []
        """What ends each list and mapping that is still open, the innermost last."""
        self._text = text
        self._builder = builder
        self._at = 0
        self._line_starts = line_starts(text)

    def value(self) -> None:
        """Read one value; of a list or mapping that is not empty, up to its first scalar."""
        while True:
            sign = self._next()
            if sign == "{":
                self._builder.open({}, self._place(self._at))
                if self._closes_at_once("}"):
                    return
                self._key()
            elif sign == "[":
                self._builder.open([], self._place(self._at))
                if self._closes_at_once("]"):
                    return
            else:
                self._scalar(sign)
                return

    def after_value(self) -> None:
        """Read what follows a value within a list or mapping."""
        closer = self.closers[-1]
        sign = self._next()
        if sign == closer:
            self._close()
        elif sign == ",":
            self._at += 1
            if self._next() == closer:
                self._refuse(f"expected no comma before {closer!r}")
            if closer == "}":
                self._key()
            self.value()
        else:
            self._refuse(f"expected ',' or {closer!r}")

    def end(self) -> None:
        """Make sure that nothing follows the document."""
        if self._next():
            self._refuse("expected nothing after the one JSON value of the document")

    def _next(self) -> str:
        sign = self._text[self._at : self._at + 1]
        if sign not in _BLANKS:
            return sign
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _closes_at_once(self, closer: str) -> bool:
        self.closers.append(closer)
        self._at += 1
        if self._next() != closer:
            return False
        self._close()
        return True

    def _close(self) -> None:
        self._at += 1
        self.closers.pop()
        self._builder.close()

    def _key(self) -> None:
        if self._next() != '"':
            self._refuse("expected a key in double quotes")
        self._string()
        if self._next() != ":":
            self._refuse("expected ':' after a key")
        self._at += 1

    def _scalar(self, sign: str) -> None:
        if sign == '"':
            self._string()
            return
        start = self._at
        word = _WORD.match(self._text, start)
        number = _NUMBER.match(self._text, start)
        place = self._place(start)
        if number is not None and not _WORD.match(self._text, number.end()):
            self._builder.number(number[0], place)
            self._at = number.end()
        elif word is not None and word[0] in _WORDS:
            self._builder.scalar(_WORDS[word[0]], place)
            self._at = word.end()
        elif word is not None and word[0] in _NOT_FINITE:
            self._builder.fault(place, f"is {word[0]}, expected a finite number")
            self._builder.scalar(0, place)
            self._at = word.end()
        else:
            self._refuse("expected a value")

    def _string(self) -> None:
        start = self._at
        try:
            value, self._at = _STRING.raw_decode(self._text, start)
        except json.JSONDecodeError as error:
            self._at = min(error.pos, len(self._text))
            told = next(
                (told for begins, told in _BROKEN_STRING if error.msg.startswith(begins)),
                "has a broken string",
            )
            self._stop(told)
        self._builder.scalar(value, self._place(start))

    def _refuse(self, expected: str) -> NoReturn:
        found = self._text[self._at : self._at + 1]
        if not found:
            self._stop(f"ends too early, {expected}")
        word = _WORD.match(self._text, self._at)
        self._stop(f"is not JSON at {shown(word[0] if word else found)}, {expected}")

    def _stop(self, told: str) -> NoReturn:
        place = self._place(self._at)
        self._builder.findings.stop(place, key=self._builder.path, message=told)

    def _place(self, at: int) -> Place:
        return place_at(self._line_starts, at)
