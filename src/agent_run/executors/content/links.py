"""The link checker: files, headings and web pages that a draft points at.

Every target is looked up once, however often it is linked. What could not be found out lowers
the confidence of the check instead of passing or failing it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from agent_run.executors.content.addresses import PUBLIC_ONLY, Door
from agent_run.executors.content.drafts import Draft
from agent_run.executors.content.fetching import (
    POLITE,
    Answer,
    Fetcher,
    Finding,
    Manners,
    open_fetcher,
)
from agent_run.executors.content.pages import part_of
from agent_run.executors.content.prose import Link
from agent_run.executors.content.proxies import NO_PROXIES, Proxies
from agent_run.executors.content.remarks import (
    Check,
    Remark,
    Severity,
    digest_of,
    in_order,
    quoted,
    status_of,
)
from agent_run.executors.content.targets import Targets
from agent_run.ledger.words import counted

VERSION: Final = "links-3"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_MAIL: Final = re.compile(r"mailto:[^\s@]+@[^\s@]+\.[^\s@]+\Z", re.IGNORECASE)
_HARMFUL: Final = frozenset({"javascript", "vbscript", "data", "file"})
_SEVERITIES: Final[dict[Finding, Severity]] = {
    "broken": "error",
    "refused": "error",
    "private": "warning",
    "unsure": "warning",
    "part": "warning",
    "moved": "suggestion",
    "unread": "suggestion",
}
_UNKNOWN: Final = frozenset({"unsure", "private"})
_THERE: Final = frozenset({"fine", "moved"})
_SURE: Final = 0.98
Answers: TypeAlias = dict[str, Answer]
Wanted: TypeAlias = Mapping[str, frozenset[str]]
"""Web pages, and the parts of each that the draft points at."""


@dataclass(frozen=True, slots=True)
class LinkChecker:
    """Looks up every link of a draft."""

    root: Path | None = None
    """Relative links may not lead out of it. `None` means the folder of the draft."""
    offline: bool = False
    """Web pages are not asked for, and reported as not asked."""
    door: Door = PUBLIC_ONLY
    manners: Manners = POLITE
    proxies: Proxies = NO_PROXIES
    """What pages answer does not depend on the way to them, so they are in no key."""
    name: str = "links"

    def cache_key(self, draft: Draft) -> str:
        """Return the key under which a check of `draft` may be kept.

        It holds what the draft points at on this machine. What the web answers is not in it:
        whoever keeps a check must decide for how long the web may be believed.
        """
        return self._key(draft, _local(draft, self.root))

    async def check(self, draft: Draft, *, seconds: float | None = None) -> Check:
        """Return what became of the links of `draft`.

        What was not reached within `seconds` is named as not checked.
        """
        started = monotonic()
        local = await anyio.to_thread.run_sync(_local, draft, self.root)
        wanted = _in_turns(_wanted(draft.prose.links))
        if self.offline:
            web = dict.fromkeys(wanted, Answer("unsure", "was not asked: offline"))
        elif self.proxies.fault:
            told = f"was not asked: {self.proxies.fault}"
            web = dict.fromkeys(wanted, Answer("unsure", told, again=True))
        else:
            usual = self.manners.all_seconds
            left = usual if seconds is None else seconds - (monotonic() - started)
            manners = replace(self.manners, all_seconds=max(0.0, min(usual, left)))
            web = await ask_all(wanted, self.door, manners, self.proxies)
        return _verdict(draft, {**local, **web}, self._key(draft, local))

    def _key(self, draft: Draft, local: Answers) -> str:
        found = sorted((key, repr(one)) for key, one in local.items())
        # A set has another order in every process.
        door = (sorted(self.door.allowed_hosts), self.door.allow_private)
        settings = (door, str(self.manners), self.offline)
        return digest_of(VERSION, settings, found, draft.digest)


async def ask_all(
    wanted: Wanted, door: Door, manners: Manners, proxies: Proxies = NO_PROXIES
) -> Answers:
    """Return what the servers say about the pages, in bounded time."""
    told = f"was not checked: all links together had {manners.all_seconds:.3g} s"
    answers: Answers = dict.fromkeys(wanted, Answer("unsure", told, again=True))
    waiting = iter(wanted.items())
    heard = False
    if not wanted:
        return answers
    with anyio.move_on_after(manners.all_seconds):
        async with open_fetcher(door, manners, proxies) as fetcher:
            try:
                async with anyio.create_task_group() as group:
                    for _ in range(min(manners.at_once, len(wanted))):
                        group.start_soon(_work, fetcher, waiting, answers)
            finally:
                heard = fetcher.heard
    return {url: _settled(answer, heard=heard) for url, answer in answers.items()}


async def _work(
    fetcher: Fetcher, waiting: Iterator[tuple[str, frozenset[str]]], answers: Answers
) -> None:
    for url, parts in waiting:
        try:
            answers[url] = await fetcher.ask(url, parts)
        except Exception as error:  # noqa: BLE001 - one link must not end the check of the others
            said = f"could not be asked: {type(error).__name__}: {error}"
            answers[url] = Answer("unsure", said, again=True)


def _settled(answer: Answer, *, heard: bool) -> Answer:
    """Return the answer with silence explained: without any voice, it may be our network."""
    if answer.finding != "silent":
        return answer
    if heard:
        return replace(answer, finding="broken")
    told = f"{answer.message}; no host answered at all, so it may be the network here"
    return replace(answer, finding="unsure", message=told, again=True)


def _wanted(links: Sequence[Link]) -> dict[str, frozenset[str]]:
    parts: dict[str, set[str]] = {}
    for link in links:
        if _is_web(link.target):
            url, part = _split(link.target)
            parts.setdefault(url, set()).update({part} - {""})
    return {url: frozenset(named) for url, named in parts.items()}


def _is_web(target: str) -> bool:
    return target.lower().startswith(("http:", "https:", "//"))


def _split(target: str) -> tuple[str, str]:
    """Return the page, which is asked for once however many parts are named, and the part."""
    bare, _, fragment = target.partition("#")
    return (f"https:{bare}" if bare.startswith("//") else bare), part_of(fragment)


def _in_turns(wanted: Wanted) -> Wanted:
    """Return the pages so that hosts take turns and none keeps all workers waiting."""
    seen: Counter[str] = Counter()
    ranks: dict[str, int] = {}
    for url in wanted:
        host = url.partition("//")[2].partition("/")[0]
        ranks[url] = seen[host]
        seen[host] += 1
    return {url: wanted[url] for url in sorted(ranks, key=ranks.__getitem__)}


def _local(draft: Draft, root: Path | None) -> Answers:
    targets = Targets(draft, root)
    answers: Answers = {}
    for link in draft.prose.links:
        if link.target not in answers and not _is_web(link.target):
            answers[link.target] = _looked_up(targets, link.target)
    return answers


def _looked_up(targets: Targets, target: str) -> Answer:
    if not target:
        return Answer("broken", "is empty")
    if not _SCHEME.match(target):
        return targets.look_up(target)
    scheme = urlsplit(target[:100].split("[", maxsplit=1)[0]).scheme
    if scheme in _HARMFUL:
        return Answer("broken", f"runs or opens something: {scheme!r} has no place in a draft")
    if scheme == "mailto" and not _MAIL.match(target.partition("?")[0]):
        return Answer("broken", "is not a mail address")
    return Answer("fine", "is not a page")


def _about(link: Link, answers: Answers) -> Answer:
    """Return what is known about a link, the part of the page included."""
    if not _is_web(link.target):
        return answers[link.target]
    url, part = _split(link.target)
    answer = answers[url]
    return _with_part(answer, part) if part and answer.finding in _THERE else answer


def _with_part(answer: Answer, part: str) -> Answer:
    shown = quoted(part)
    if part in answer.parts.missing and answer.parts.scripted:
        told = f"answers; its text has no part {shown!r}, unless a script makes it"
        return replace(answer, finding="part", message=told)
    if part in answer.parts.missing:
        return replace(answer, finding="broken", message=f"has no part {shown!r}")
    if answer.finding == "moved":
        return replace(answer, moved_to=f"{answer.moved_to}#{part}")
    if answer.parts.unread:
        told = f"answers; its part {shown!r} was not checked: {answer.parts.unread}"
        return replace(answer, finding="unread", message=told)
    return answer


def _verdict(draft: Draft, answers: Answers, key: str) -> Check:
    links = draft.prose.links
    said = [_about(link, answers) for link in links]
    remarks = in_order(
        _remark(draft, link, answer)
        for link, answer in zip(links, said, strict=True)
        if answer.finding != "fine"
    )
    unsure = sum(answer.finding in _UNKNOWN for answer in said)
    whole = not any(answer.again for answer in said)
    status, counts = status_of(remarks), _counts(remarks, len(links), unsure)
    if status == "passed" and links and unsure == len(links):
        told = f"no link could be checked: {counts}"
        return Check("blocked", 0.0, told, remarks, key, whole=whole)
    if status == "passed" and not whole:
        told = f"not every link could be looked at: {counts}"
        return Check("blocked", 0.0, told, remarks, key, whole=False)
    known = 1.0 if status == "failed" or not links else 1 - unsure / len(links)
    return Check(status, round(_SURE * known, 4), counts, remarks, key, whole=whole)


def _counts(remarks: Sequence[Remark], total: int, unsure: int) -> str:
    """Return how many links are what, and the first of the gravest in its own words."""
    if not total:
        return "no links"
    errors = [one for one in remarks if one.severity == "error"]
    found = [f"{len(errors)} broken"] if errors else []
    if unsure:
        found.append(f"{unsure} could not be checked")
    told = f"{counted(total, 'link')}: {', '.join(found) or 'none broken'}"
    doubts = (one for one in remarks if one.severity == "warning")
    first = errors[0] if errors else next(doubts, None)
    return f"{told}; {first.line}:{first.column} {first.message}" if first else told


def _remark(draft: Draft, link: Link, answer: Answer) -> Remark:
    line, column = draft.place(link.start)
    rule = f"links.{answer.finding}"
    severity = _SEVERITIES[answer.finding]
    quote = quoted(link.target)
    message = f"{quote!r} {answer.message}"
    return Remark(rule, severity, line, column, quote, message, answer.moved_to)
