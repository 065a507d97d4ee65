"""The spelling checker: known misspellings and what they should be.

It looks words up in the list of the `codespell` distribution, which is data about real slips,
so that it misses some but hardly ever cries wolf. Only the list is read; no code of that
package is imported.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Final

from anyio import to_thread

from agent_run.contract.files import text_of
from agent_run.errors import Unfit
from agent_run.executors.content.drafts import Draft
from agent_run.executors.content.remarks import (
    Check,
    Remark,
    Severity,
    digest_of,
    in_order,
    quoted,
    status_of,
    tally,
)
from agent_run.executors.content.unseen import unseen

VERSION: Final = "spelling-2"
DISTRIBUTION: Final = "codespell"
_LIST: Final = "codespell_lib/data/dictionary.txt"
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_PART: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_SURE_OF_A_SLIP: Final = 0.97
_SURE_OF_NONE: Final = 0.8
"""The list knows about a quarter of the slips that people make, so silence proves little."""
_SURE_OF_LITTLE: Final = 0.6
"""What nobody sees may stand inside a word, which is then another one."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What a misspelling should be."""

    words: tuple[str, ...]
    note: str = ""
    """Why the list does not want it changed without a look."""


@dataclass(frozen=True, slots=True)
class SpellingChecker:
    """Looks up every word of a draft."""

    accept: frozenset[str] = frozenset()
    """Words that are right here, whatever the list says; capitals do not matter."""
    name: str = "spelling"

    def cache_key(self, draft: Draft) -> str:
        """Return the key under which a check of `draft` may be kept.

        Raises:
            Unfit: The list of misspellings is not installed.
        """
        version = _installed().version
        return digest_of(VERSION, version, sorted(self.accept), draft.digest)

    async def check(self, draft: Draft, *, seconds: float | None = None) -> Check:
        """Return the misspellings in `draft`.

        Raises:
            Unfit: The list of misspellings is not installed.
        """
        return await to_thread.run_sync(check_spelling, draft, self)


def check_spelling(draft: Draft, checker: SpellingChecker) -> Check:
    """Return the misspellings that `checker` finds in `draft`."""
    slips = misspellings()
    accepted = frozenset(word.casefold() for word in checker.accept)
    remarks: list[Remark] = []
    for segment in draft.prose.segments:
        for found in _WORD.finditer(segment.text):
            for word, start in _readings(found):
                known = slips.get(word.lower().replace("\u2019", "'"))
                if known is None or word.casefold() in accepted:
                    continue
                first, last = draft.span(segment, start, start + len(word))
                remarks.append(_remark(draft, known, first, last))
    hidden = unseen(draft)
    ordered = in_order([*remarks, *hidden])
    status = status_of(ordered)
    sure = _SURE_OF_A_SLIP if status == "failed" else _SURE_OF_NONE
    if status == "passed" and any(one.severity == "warning" for one in hidden):
        sure = _SURE_OF_LITTLE
    notes = f"spelling: {tally(ordered)}"
    return Check(status, sure, notes, ordered, checker.cache_key(draft))


def read_accept_list(path: Path) -> frozenset[str]:
    """Return the words of an accept list: one a line, `#` starts a comment.

    Raises:
        InvalidDocument: It cannot be read as text.
    """
    bare = (line.partition("#")[0].strip() for line in text_of(path).splitlines())
    return frozenset(word for word in bare if word)


@lru_cache(maxsize=1)
def misspellings() -> dict[str, Correction]:
    """Return every known misspelling in lower case, with its correction.

    Raises:
        Unfit: The list is not installed.
    """
    try:
        text = Path(str(_installed().locate_file(_LIST))).read_text("utf-8")
    except OSError as error:
        msg = f"the list of misspellings of {DISTRIBUTION!r} cannot be read: {error}"
        raise Unfit(msg) from error
    return parse_list(text.splitlines())


def parse_list(lines: Iterable[str]) -> dict[str, Correction]:
    """Return the corrections of lines such as `teh->the` and `hist->heist, his, note`."""
    known: dict[str, Correction] = {}
    for line in lines:
        slip, arrow, answer = line.partition("->")
        if not arrow:
            continue
        *words, note = (part.strip() for part in answer.split(","))
        # One answer stands alone; several end in a comma, perhaps with a note behind it.
        known[slip.strip().lower()] = (
            Correction(tuple(words), note) if words else Correction((note,))
        )
    return known


def _installed() -> metadata.Distribution:
    try:
        return metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        msg = f"spelling needs {DISTRIBUTION!r}, expected it from `pip install 'agent-run[qa]'`"
        raise Unfit(msg) from error


def _readings(found: re.Match[str]) -> list[tuple[str, int]]:
    word = found.group()
    # A hyphen may join two words or be part of one misspelling: both readings are looked up.
    parts = [(part.group(), found.start() + part.start()) for part in _PART.finditer(word)]
    return parts if len(parts) == 1 else [(word, found.start()), *parts]


def _remark(draft: Draft, known: Correction, start: int, end: int) -> Remark:
    line, column = draft.place(start)
    quote = quoted(draft.text[start:end])
    # With a note or several answers the slip may be a word after all.
    severity: Severity = "error" if len(known.words) == 1 and not known.note else "warning"
    better = [_like(word, quote) for word in known.words]
    said = f"{quote!r} is a known misspelling of {' or '.join(map(repr, better))}"
    if known.note:
        said += f" ({known.note})"
    return Remark("spelling", severity, line, column, quote, said, " | ".join(better))


def _like(word: str, model: str) -> str:
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word
