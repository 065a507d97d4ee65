"""The link checker: files, headings and web pages that a draft points at.

Every target is looked up once, however often it is linked. What could not be found out lowers
the confidence of the check instead of passing or failing it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urldefrag, urlsplit

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
from agent_run.executors.content.prose import Link
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

VERSION: Final = "links-2"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_MAIL: Final = re.compile(r"mailto:[^\s@]+@[^\s@]+\.[^\s@]+\Z", re.IGNORECASE)
_HARMFUL: Final = frozenset({"javascript", "vbscript", "data", "file"})
_SEVERITIES: Final[dict[Finding, Severity]] = {
    "broken": "error",
    "refused": "error",
    "unsure": "warning",
    "moved": "suggestion",
}
_SURE: Final = 0.98
Answers: TypeAlias = dict[str, Answer]


@dataclass(frozen=True, slots=True)
class LinkChecker:
    """Looks up every link of a draft."""

    root: Path | None = None
    """Relative links may not lead out of it. `None` means the folder of the draft."""
    offline: bool = False
    """Web pages are not asked for, and reported as not asked."""
    door: Door = PUBLIC_ONLY
    manners: Manners = POLITE
    name: str = "links"

    def cache_key(self, draft: Draft) -> str:
        """Return the key under which a check of `draft` may be kept.

        It holds what the draft points at on this machine. What the web answers is not in it:
        whoever keeps a check must decide for how long the web may be believed.
        """
        local = sorted((key, repr(one)) for key, one in _local(draft, self.root).items())
        settings = (str(self.door), str(self.manners), self.offline)
        return digest_of(VERSION, settings, local, draft.digest)

    async def check(self, draft: Draft) -> Check:
        """Return what became of the links of `draft`."""
        answers = await anyio.to_thread.run_sync(_local, draft, self.root)
        urls = _in_turns(dict.fromkeys(_web_targets(draft.prose.links)))
        if self.offline:
            answers.update(dict.fromkeys(urls, Answer("unsure", "was not asked: offline")))
        else:
            answers.update(await ask_all(urls, self.door, self.manners))
        key = await anyio.to_thread.run_sync(self.cache_key, draft)
        return _verdict(draft, answers, key)


async def ask_all(urls: Sequence[str], door: Door, manners: Manners) -> Answers:
    """Return what the servers say about `urls`, in bounded time."""
    late = Answer("unsure", f"was not asked: all links together took {manners.all_seconds:g} s")
    answers: Answers = dict.fromkeys(urls, late)
    if not urls:
        return answers
    waiting = iter(urls)
    with anyio.move_on_after(manners.all_seconds):
        async with open_fetcher(door, manners) as fetcher, anyio.create_task_group() as group:
            for _ in range(min(manners.at_once, len(urls))):
                group.start_soon(_work, fetcher, waiting, answers)
    return answers


async def _work(fetcher: Fetcher, waiting: Iterator[str], answers: Answers) -> None:
    for url in waiting:
        answers[url] = await fetcher.ask(url)


def _web_targets(links: Sequence[Link]) -> Iterator[str]:
    for link in links:
        if _is_web(link.target):
            yield _whole(link.target)


def _is_web(target: str) -> bool:
    return target.lower().startswith(("http:", "https:", "//"))


def _whole(target: str) -> str:
    # A fragment is for the browser: pages that differ only there are asked for once.
    bare = urldefrag(target).url if "#" in target else target
    return f"https:{bare}" if bare.startswith("//") else bare


def _in_turns(urls: dict[str, None]) -> list[str]:
    """Return `urls` so that hosts take turns and none keeps all workers waiting."""
    seen: Counter[str] = Counter()
    ranks: dict[str, int] = {}
    for url in urls:
        host = url.partition("//")[2].partition("/")[0]
        ranks[url] = seen[host]
        seen[host] += 1
    return sorted(ranks, key=ranks.__getitem__)


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


def _verdict(draft: Draft, answers: Answers, key: str) -> Check:
    remarks: list[Remark] = []
    unsure = 0
    for link in draft.prose.links:
        web = _is_web(link.target)
        answer = answers[_whole(link.target) if web else link.target]
        unsure += answer.finding == "unsure"
        if answer.finding != "fine":
            remarks.append(_remark(draft, link, answer))
    total = len(draft.prose.links)
    ordered = in_order(remarks)
    broken = sum(one.severity == "error" for one in ordered)
    links = "1 link" if total == 1 else f"{total} links"
    counts = f"{links}: {broken} broken, {unsure} could not be checked"
    status = status_of(ordered)
    if status == "passed" and total and unsure == total:
        return Check("blocked", 1.0, f"no link could be checked: {counts}", ordered, key)
    known = 1.0 if status == "failed" or not total else (total - unsure) / total
    return Check(status, round(_SURE * known, 4), counts, ordered, key)


def _remark(draft: Draft, link: Link, answer: Answer) -> Remark:
    line, column = draft.place(link.start)
    rule = f"links.{answer.finding}"
    severity = _SEVERITIES[answer.finding]
    quote = quoted(link.target)
    message = f"{quote!r} {answer.message}"
    return Remark(rule, severity, line, column, quote, message, answer.moved_to)
