"""Phrases that must not stand in a draft, and phrases that must once something else does.

The lexicon is YAML that a legal team can keep; every fault of the file is told at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from agent_run.contract.base import Contract, Line, Lines, first_repeated
from agent_run.contract.files import text_of
from agent_run.contract.reading import ReadingLimits, load, read_document
from agent_run.executors.content.prose import Prose, Segment
from agent_run.executors.content.remarks import Severity, digest_of
from agent_run.executors.content.sameness import Word, words_of

_LIMITS: Final = ReadingLimits(max_bytes=2_000_000)


def _all_words(phrases: tuple[str, ...]) -> tuple[str, ...]:
    for phrase in phrases:
        if not words_of(phrase):
            msg = f"phrase {phrase!r} holds no word"
            raise ValueError(msg)
    return phrases


Phrases: TypeAlias = Annotated[Lines, AfterValidator(_all_words)]


class Forbidden(Contract):
    """Phrases that may not be published."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=100)]
    phrases: Phrases = Field(min_length=1)
    message: Line = "this phrase may not be used"
    severity: Severity = "error"
    suggestion: Line | None = None
    unless: Phrases = ()
    """Longer phrases that make it fine, such as `not risk free`."""


class Required(Contract):
    """Phrases of which one must stand in the draft."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=100)]
    phrases: Phrases = Field(min_length=1)
    when: Phrases = ()
    """It is required once one of these occurs. Empty means always."""
    message: Line = "a required phrase is missing"
    severity: Severity = "error"


class Lexicon(Contract):
    """What a draft must and must not say."""

    version: Literal[1] = 1
    forbidden: tuple[Forbidden, ...] = ()
    required: tuple[Required, ...] = ()

    @model_validator(mode="after")
    def _say_something_once(self) -> "Lexicon":
        if not (self.forbidden or self.required):
            msg = "holds no phrase, expected entries under 'forbidden' or 'required'"
            raise ValueError(msg)
        for entries in (self.forbidden, self.required):
            repeated = first_repeated([entry.id for entry in entries])
            if repeated is not None:
                msg = f"entry {repeated!r} stands twice, expected a name for each"
                raise ValueError(msg)
        return self

    @property
    def digest(self) -> str:
        """A digest that changes when any phrase does."""
        return digest_of(self.model_dump(mode="json"))


Phrase: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A phrase at its place in one segment."""

    key: str
    segment: Segment
    start: int
    end: int


@dataclass(slots=True)
class PhraseIndex:
    """Finds many phrases in one pass: by first word, then word by word."""

    _by_first: dict[str, list[tuple[Phrase, str]]] = field(default_factory=dict)

    def add(self, key: str, phrases: Iterable[str]) -> None:
        """Look for `phrases` as well, and report them as `key`."""
        for text in phrases:
            phrase = tuple(word.same for word in words_of(text))
            self._by_first.setdefault(phrase[0], []).append((phrase, key))

    def find(self, prose: Prose) -> Iterator[Found]:
        """Yield every phrase of `prose`, in the order of the text."""
        for segment in prose.segments:
            words = words_of(segment.text)
            for at, word in enumerate(words):
                for phrase, key in self._by_first.get(word.same, ()):
                    if _stands(phrase, words, at):
                        end = words[at + len(phrase) - 1].end
                        yield Found(key, segment, word.start, end)


def _stands(phrase: Phrase, words: Sequence[Word], at: int) -> bool:
    if at + len(phrase) > len(words):
        return False
    here = words[at : at + len(phrase)]
    return all(
        word.same == same and (word.joined or index == 0)
        for index, (word, same) in enumerate(zip(here, phrase, strict=True))
    )


def read_lexicon(text: str, name: str) -> Lexicon:
    """Return the lexicon that `text` says.

    Raises:
        InvalidDocument: It is no YAML, or not of this shape; every fault is named.
    """
    return load(Lexicon, read_document(text, source=name, limits=_LIMITS))


def load_lexicon(path: Path) -> Lexicon:
    """Return the lexicon at `path`.

    Raises:
        InvalidDocument: It cannot be read or is not valid.
    """
    return read_lexicon(text_of(path, most=_LIMITS.max_bytes), str(path))


def starter_lexicon() -> Lexicon:
    """Return the lexicon that comes with this package: claims that need proof or a notice."""
    folder = resources.files("agent_run.executors.content").joinpath("rules")
    return read_lexicon(folder.joinpath("lexicon.yaml").read_text("utf-8"), "lexicon.yaml")
