"""Characters that nobody sees: they hide words, turn their order round, or carry a message.

Each kind is remarked on once, with its first place and how often it stands, so that a draft
full of them has a short report. Where a script needs them to be written at all, they are fine.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent_run.executors.content.drafts import Draft
from agent_run.executors.content.remarks import Remark, Severity
from agent_run.ledger.words import counted

_RIGHT_TO_LEFT: Final = frozenset({"R", "AL"})
_TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e")
_ISOLATING: Final = frozenset("\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
"""What texts from right to left need; elsewhere it only hides."""
_JOINING: Final = frozenset("\u200b\u200c\u200d")
"""What writings of other scripts and pictures are joined or parted by."""
_SOFT_HYPHEN: Final = "\u00ad"
_TAGS: Final = range(0xE0000, 0xE0080)
_VARIANTS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_FLAG: Final = "\U0001f3f4"
_SUSPECT: Final = re.compile(
    r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    r"|&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
)
_AROUND: Final = 12


@dataclass(slots=True)
class _Kind:
    first: int
    end: int
    times: int = 1


def unseen(draft: Draft) -> tuple[Remark, ...]:
    """Return a remark for each kind of character of `draft` that nobody sees."""
    kinds: dict[str, _Kind] = {}
    for char, start, end in _hidden(draft):
        if char in kinds:
            kinds[char].times += 1
        else:
            kinds[char] = _Kind(start, end)
    return tuple(_remark(draft, char, kind) for char, kind in kinds.items())


def _hidden(draft: Draft) -> Iterator[tuple[str, int, int]]:
    text = draft.text
    from_the_right: bool | None = None
    for found in _SUSPECT.finditer(text):
        char = found.group()
        if len(char) > 1:
            char = html.unescape(char) if draft.format != "plain" else ""
            if len(char) != 1 or not _SUSPECT.fullmatch(char):
                continue
        if char in _ISOLATING:
            if from_the_right is None:
                from_the_right = _has_right_to_left(text)
            if from_the_right:
                continue
        elif _is_needed(char, text[max(0, found.start() - 8) : found.start()]):
            continue
        yield char, found.start(), found.end()


def _has_right_to_left(text: str) -> bool:
    return any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in set(text))


def _is_needed(char: str, before: str) -> bool:
    """Say whether what stands before cannot be written without `char`."""
    if not before:
        return False
    last = before[-1]
    code = ord(char)
    if code in _TAGS:  # flags of regions are a black flag and letters that nobody sees
        return _FLAG in before or ord(last) in _TAGS
    if any(code in known for known in _VARIANTS):
        return not last.isspace() and not (last.isascii() and last.isalpha())
    if char in _JOINING:
        return not last.isascii() and not unicodedata.name(last, "").startswith("LATIN")
    return False


def _remark(draft: Draft, char: str, kind: _Kind) -> Remark:
    line, column = draft.place(kind.first)
    name = unicodedata.name(char, "CONTROL CHARACTER" if ord(char) < 0xA0 else "UNASSIGNED")  # noqa: PLR2004
    said = f"U+{ord(char):04X} {name.lower()} is seen by nobody"
    if char in _TURNING:
        said = f"U+{ord(char):04X} {name.lower()} makes words read in another order"
    if kind.times > 1:
        said += f", here and in {counted(kind.times - 1, 'other place')}"
    severity: Severity = "suggestion" if char == _SOFT_HYPHEN else "warning"
    start = max(0, kind.first - _AROUND)
    around = draft.text[start : kind.end + _AROUND]
    return Remark("unseen", severity, line, column, _spelled_out(around), said)


def _spelled_out(text: str) -> str:
    shown = _SUSPECT.sub(
        lambda found: found[0] if len(found[0]) > 1 else f"<U+{ord(found[0]):04X}>", text
    )
    return " ".join(shown.split())
