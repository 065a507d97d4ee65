"""The report in every form that a file can have: Markdown, JSON, or a page.

Drafts, checklists and models are strangers: nothing they say is taken for markup.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from agent_run.errors import InvalidDocument
from agent_run.recipes.qa.page import to_html
from agent_run.recipes.qa.reporting import DraftReport, Report, report_json
from agent_run.recipes.qa.scoring import Score, score_json, score_lines
from agent_run.recipes.qa.wording import VERDICTS, counts, evidence, how, standing

Render = Callable[[Report, Score | None], str]

_MARKUP: Final = re.compile(r"([\\`*_\[\]<>#|~&])")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def rendered(report: Report, score: Score | None, place: Path) -> str:
    """Return the report in the format that the ending of `place` names.

    Raises:
        InvalidDocument: It names none.
    """
    kind = place.suffix.lower()
    if kind not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        msg = f"report {str(place)!r} ends in {kind!r}, expected one of {known}"
        raise InvalidDocument(msg)
    return FORMATS[kind](report, score)


def to_json(report: Report, score: Score | None) -> str:
    """Return the report as one JSON object."""
    return json.dumps(whole_json(report, score), indent=2, ensure_ascii=True) + "\n"


def whole_json(report: Report, score: Score | None) -> dict[str, object]:
    """Return the report, and the score if there is one, as data."""
    told: dict[str, object] = dict(report_json(report))
    if score is not None:
        told["score"] = score_json(score)
    return told


def to_markdown(report: Report, score: Score | None) -> str:
    """Return the report as Markdown."""
    return "\n".join(_markdown(report, score)).rstrip() + "\n"


FORMATS: Final[Mapping[str, Render]] = {
    ".md": to_markdown,
    ".markdown": to_markdown,
    ".json": to_json,
    ".html": to_html,
    ".htm": to_html,
}


def _markdown(report: Report, score: Score | None) -> Iterator[str]:
    yield f"# Content QA: {VERDICTS[report.status]}"
    yield from ("", _md(counts(report)), "")
    yield from ("| draft | status | checks |", "|---|---|---|")
    for draft in report.drafts:
        checks = ", ".join(f"{_md(s.step.id)} {_md(standing(s))}" for s in draft.steps)
        yield f"| {_md(draft.name)} | {VERDICTS[draft.status]} | {checks} |"
    for draft in report.drafts:
        yield from ("", f"## {_md(draft.name)}: {VERDICTS[draft.status]}", "")
        yield from _md_draft(draft)
    if score is not None:
        yield from ("", "## Against the key", "", "```", *score_lines(score), "```")


def _md_draft(draft: DraftReport) -> Iterator[str]:
    yield f"Run `{draft.run_id}`, trace `{draft.trace_id}`."
    for step in draft.steps:
        yield from ("", f"### {_md(step.step.id)}: {_md(standing(step))}", "")
        yield f"{_md(step.step.goal)}. {_md(how(step))}"
        yield from ("", _md(step.why))
        if step.overruled:
            yield from ("", _md(step.overruled))
        yield from _list(_md(one) for one in (*step.warnings, *evidence(step)))
    if draft.over:
        yield from ("", "Over budget:")
        yield from _list(map(_md, draft.over))
    if draft.proposals:
        yield from ("", "Proposals:")
        yield from _list(map(_md, draft.proposals))


def _list(items: Iterator[str]) -> Iterator[str]:
    lines = [f"- {item}" for item in items]
    if lines:
        yield from ("", *lines)


def _md(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(_CONTROL.sub("\ufffd", text).split()))
