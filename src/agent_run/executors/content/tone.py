"""The brand-tone checker: a rulebook applied to a draft.

A rule that runs out of time makes the check blocked rather than passed: what was not looked
at must not count as fine.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from anyio import to_thread

from agent_run.executors.content.drafts import Draft
from agent_run.executors.content.matching import Finder, Hit, finder_of
from agent_run.executors.content.patterns import Stopwatch
from agent_run.executors.content.remarks import (
    Check,
    Remark,
    Status,
    digest_of,
    in_order,
    quoted,
    status_of,
    tally,
)
from agent_run.executors.content.rulebook import Refused, Rule, Rulebook
from agent_run.executors.content.scopes import Unit, units
from agent_run.executors.content.unseen import unseen
from agent_run.ledger.words import counted

VERSION: Final = "tone-2"
MOST_HITS: Final = 1_000
"""A rule that hits more often says so once and stops: nobody reads the rest."""
_SURE: Final = 0.95
_DOUBT_PER_WARNING: Final = 0.06
_LEAST_SURE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one rule said about the whole draft."""

    remarks: tuple[Remark, ...]
    fault: str = ""
    """Why the rule did not get through. Empty means that it did."""


@dataclass(frozen=True, slots=True)
class ToneChecker:
    """Applies `book` to a draft."""

    book: Rulebook
    rule_seconds: float = 2.0
    """Time for one rule over the whole draft."""
    draft_seconds: float = 30.0
    """Time for all rules together."""
    name: str = "tone"

    def cache_key(self, draft: Draft) -> str:
        """Return the key under which a check of `draft` may be kept."""
        return digest_of(VERSION, self.book.digest, draft.digest)

    async def check(self, draft: Draft, *, seconds: float | None = None) -> Check:
        """Return what the rules say about `draft`."""
        held = (
            self
            if seconds is None
            else replace(self, draft_seconds=min(self.draft_seconds, seconds))
        )
        return await to_thread.run_sync(check_tone, draft, held)


def check_tone(draft: Draft, checker: ToneChecker) -> Check:
    """Return what the rules of `checker` say about `draft`."""
    watch = Stopwatch.of(checker.draft_seconds)
    seen: dict[str, tuple[Unit, ...]] = {}
    outcomes: list[Outcome] = []
    refused = list(checker.book.refused)
    for rule in checker.book.rules:
        try:
            find = finder_of(rule)
        except ValueError as error:
            refused.append(Refused(rule.name, str(error)))
            continue
        for scope in rule.scopes:
            if scope not in seen:
                seen[scope] = tuple(units(draft, scope))
        looked_at = [unit for scope in rule.scopes for unit in seen[scope]]
        limit = watch.no_later_than(checker.rule_seconds)
        outcomes.append(_apply(draft, rule, find, looked_at, limit))
    return _verdict(outcomes, unseen(draft), refused, checker.cache_key(draft))


def _apply(
    draft: Draft, rule: Rule, find: Finder, looked_at: list[Unit], watch: Stopwatch
) -> Outcome:
    remarks: list[Remark] = []
    try:
        for unit, hit in _hits(find, looked_at, watch):
            remarks.append(_remark(draft, rule, unit, hit))
            if len(remarks) == MOST_HITS:
                said = f"hits more than {MOST_HITS} times; the rest is not listed"
                remarks.append(Remark(rule.name, rule.level, 1, 1, "", said))
                break
    except TimeoutError:
        return Outcome(tuple(remarks), f"{rule.name} did not end in its time")
    except ValueError as error:
        return Outcome(tuple(remarks), f"{rule.name}: {error}")
    return Outcome(tuple(dict.fromkeys(remarks)))


def _hits(find: Finder, looked_at: list[Unit], watch: Stopwatch) -> Iterator[tuple[Unit, Hit]]:
    for unit in looked_at:
        for hit in find(unit.text, watch):
            yield unit, hit


def _remark(draft: Draft, rule: Rule, unit: Unit, hit: Hit) -> Remark:
    start, end = draft.span(unit.segment, unit.start + hit.start, unit.start + hit.end)
    line, column = draft.place(start)
    quote = quoted(draft.text[start:end])
    return Remark(rule.name, rule.level, line, column, quote, hit.message, hit.suggestion)


def _verdict(
    outcomes: list[Outcome], hidden: tuple[Remark, ...], refused: list[Refused], key: str
) -> Check:
    faults = [one.fault for one in outcomes if one.fault]
    found = (remark for one in outcomes for remark in one.remarks)
    remarks = list(in_order((*found, *hidden)))
    notes = [f"{counted(len(outcomes), 'rule')}: {tally(remarks)}"]
    if refused:
        notes.append("not applied: " + ", ".join(str(one) for one in refused))
    notes.extend(faults)
    remarks.extend(Remark("tone.rules", "warning", 1, 1, "", fault) for fault in faults)
    status = status_of(remarks)
    if status == "passed" and (faults or not outcomes):
        return Check("blocked", 0.0, "; ".join(notes), tuple(remarks), key, whole=not faults)
    sure = _confidence(status, len(outcomes), len(refused), remarks)
    return Check(status, sure, "; ".join(notes), tuple(remarks), key, whole=not faults)


def _confidence(status: Status, applied: int, refused: int, remarks: list[Remark]) -> float:
    """Return how sure the status is: a pass is in doubt by warnings and missing rules.

    What is found stays found, however many other rules could not be applied.
    """
    if status == "failed":
        return _SURE
    warnings = sum(one.severity == "warning" for one in remarks)
    sure = max(_LEAST_SURE, _SURE - _DOUBT_PER_WARNING * warnings)
    return round(sure * applied / (applied + refused), 4)
