"""How each kind of brand rule finds its hits in a stretch of prose.

A rule is compiled once into a `Finder`; finders know nothing of drafts or places.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

import regex

from agent_run.executors.content.capitals import follows_case
from agent_run.executors.content.patterns import Stopwatch, compiled, matches
from agent_run.executors.content.rulebook import Rule

_SLOT: Final = re.compile(r"%(?:\[(\d)\])?s|%%")


@dataclass(frozen=True, slots=True)
class Hit:
    """Where a rule found something, and what it says about it."""

    start: int
    end: int
    message: str
    suggestion: str | None = None


Finder: TypeAlias = Callable[[str, Stopwatch], Iterator[Hit]]


def finder_of(rule: Rule) -> Finder:
    """Return what finds the hits of `rule`.

    Raises:
        ValueError: One of its patterns cannot be compiled, or it says nothing to look for.
    """
    match rule.extends:
        case "existence":
            return _existence(rule)
        case "substitution":
            return _substitution(rule)
        case "occurrence":
            return _occurrence(rule)
        case "repetition":
            return _repetition(rule)
        case "capitalization":
            return _capitalization(rule)
        case _:
            assert_never(rule.extends)


def filled(message: str, *values: str) -> str:
    """Return `message` with each `%s`, or `%[1]s`, replaced by its value."""
    queue = iter(values)

    def fill(slot: re.Match[str]) -> str:
        if slot.group() == "%%":
            return "%"
        if slot.group(1):
            index = int(slot.group(1)) - 1
            return values[index] if 0 <= index < len(values) else ""
        return next(queue, "")

    return _SLOT.sub(fill, message)


def _existence(rule: Rule) -> Finder:
    words = "|".join(rule.tokens)
    body = _bounded(words, rule) if rule.tokens else ""
    raw = "".join(rule.raw)
    pattern = compiled(
        _some(body + raw if rule.append else raw + body), ignorecase=rule.ignorecase
    )
    excused = _excuses(rule)

    def find(text: str, watch: Stopwatch) -> Iterator[Hit]:
        for found in matches(pattern, text, watch):
            if not excused(found.group()):
                said = filled(rule.message, found.group())
                yield Hit(found.start(), found.end(), said, _advice(rule))

    return find


def _substitution(rule: Rule) -> Finder:
    groups = "|".join(f"(?P<swap_{index}>{key})" for index, (key, _) in enumerate(rule.swap))
    pattern = compiled(_bounded(_some(groups), rule), ignorecase=rule.ignorecase)
    excused = _excuses(rule)

    def find(text: str, watch: Stopwatch) -> Iterator[Hit]:
        for found in matches(pattern, text, watch):
            wanted = _wanted(rule, found)
            if found.group() in wanted or excused(found.group()):
                continue
            choice = "' or '".join(wanted)
            said = filled(rule.message, choice, found.group())
            yield Hit(found.start(), found.end(), said, " | ".join(wanted) or None)

    return find


def _wanted(rule: Rule, found: regex.Match[str]) -> tuple[str, ...]:
    index = next(i for i in range(len(rule.swap)) if found.group(f"swap_{i}") is not None)
    wanted = rule.swap[index][1].split("|")
    if rule.capitalize and found.group()[:1].isupper():
        wanted = [one[:1].upper() + one[1:] for one in wanted]
    return tuple(wanted)


def _occurrence(rule: Rule) -> Finder:
    pattern = compiled(_some(rule.token), ignorecase=rule.ignorecase)
    most, least = rule.most, rule.least
    if most is None and least is None:
        msg = "an occurrence rule needs max or min"
        raise ValueError(msg)

    def find(text: str, watch: Stopwatch) -> Iterator[Hit]:
        spans = [found.span() for found in matches(pattern, text, watch)]
        said = filled(rule.message, str(len(spans)))
        # Vale reads 0 as "no limit", and so do the rules that are written for it.
        if most and len(spans) > most:
            yield Hit(*spans[most], said)
        elif least and len(spans) < least:
            yield Hit(0, len(text), said)

    return find


def _repetition(rule: Rule) -> Finder:
    pattern = compiled(_some("|".join(rule.tokens)), ignorecase=rule.ignorecase)

    def same(one: str, other: str) -> bool:
        if rule.alpha and not one.isalpha():
            return False
        return one.casefold() == other.casefold() if rule.ignorecase else one == other

    def find(text: str, watch: Stopwatch) -> Iterator[Hit]:
        last: regex.Match[str] | None = None
        for found in matches(pattern, text, watch):
            between = text[last.end() : found.start()] if last else ""
            if last and same(last.group(), found.group()) and not between.strip():
                said = filled(rule.message, found.group())
                yield Hit(last.start(), found.end(), said, found.group())
            last = found

    return find


def _capitalization(rule: Rule) -> Finder:
    own = None if rule.match.startswith("$") else compiled(_some(rule.match))

    def find(text: str, watch: Stopwatch) -> Iterator[Hit]:
        bare = text.strip()
        if not bare:
            return
        if own is not None:
            right = next(matches(own, bare, watch), None) is not None
        else:
            right = follows_case(bare, rule.match, rule.exceptions, threshold=rule.threshold)
        if not right:
            start = text.index(bare)
            yield Hit(start, start + len(bare), filled(rule.message, bare))

    return find


def _some(pattern: str) -> str:
    if not pattern:
        msg = "the rule says nothing to look for"
        raise ValueError(msg)
    return pattern


def _bounded(pattern: str, rule: Rule) -> str:
    return f"(?:{pattern})" if rule.nonword else rf"\b(?:{pattern})\b"


def _excuses(rule: Rule) -> Callable[[str], bool]:
    excused = frozenset(one.casefold() for one in rule.exceptions)
    return lambda text: text.casefold() in excused


def _advice(rule: Rule) -> str | None:
    match list(rule.action):
        case ["replace", *choices] if choices:
            return " | ".join(choices)
        case ["remove", *_]:
            return "leave it out"
        case _:
            return None
