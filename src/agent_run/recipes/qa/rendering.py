"""The report as Markdown and as one HTML page that needs nothing else.

Drafts, checklists and models are strangers: nothing they say is taken for markup.
"""

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from agent_run.errors import InvalidDocument
from agent_run.recipes.qa.reporting import DraftReport, Report, StepReport, report_json
from agent_run.recipes.qa.scoring import Score, score_json, score_lines

Render = Callable[[Report, Score | None], str]

VERDICTS: Final[Mapping[str, str]] = {
    "pass": "pass",
    "fail": "FAIL",
    "person": "needs a person",
}
_OUTCOMES: Final[Mapping[str, str]] = {
    "passed": "passed",
    "failed": "FAILED",
    "person": "needs a person",
}
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>#|~&])")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_STYLE: Final = """\
:root{color-scheme:light dark;--ink:#1d2328;--paper:#fff;--rule:#d5dade;--pass:#1a7f47;
--fail:#b3261e;--person:#8a5a00}
@media(prefers-color-scheme:dark){:root{--ink:#e3e7ea;--paper:#14181b;--rule:#394046;
--pass:#5fd08f;--fail:#ff8a80;--person:#f0bd5a}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;
padding:.3rem .6rem;border-bottom:1px solid var(--rule)}
.pass,.passed{color:var(--pass)}.fail,.failed{color:var(--fail)}.person{color:var(--person)}
code{font-family:ui-monospace,monospace;font-size:.9em}pre{white-space:pre-wrap}"""


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


def to_html(report: Report, score: Score | None) -> str:
    """Return the report as one page: no script, nothing to fetch, light or dark."""
    return "\n".join(_page(report, score)) + "\n"


FORMATS: Final[Mapping[str, Render]] = {
    ".md": to_markdown,
    ".markdown": to_markdown,
    ".json": to_json,
    ".html": to_html,
    ".htm": to_html,
}


def counts(report: Report) -> str:
    """Return in one sentence how the drafts stand."""
    found = [draft.status for draft in report.drafts]
    told = ", ".join(
        f"{found.count(one)} {word}" for one, word in _COUNTED.items() if one in found
    )
    plural = "" if len(found) == 1 else "s"
    said = f"{len(found)} draft{plural}: {told}"
    if report.cache_hits:
        said += f"; {report.cache_hits} of {len(report.steps)} checks reused from earlier"
    return said


_COUNTED: Final = {"pass": "pass", "fail": "fail", "person": "for a person"}


def _markdown(report: Report, score: Score | None) -> Iterator[str]:
    yield f"# Content QA: {VERDICTS[report.status]}"
    yield from ("", _md(counts(report)), "")
    yield from ("| draft | status | checks |", "|---|---|---|")
    for draft in report.drafts:
        checks = ", ".join(f"{_md(s.step.id)} {_OUTCOMES[s.outcome]}" for s in draft.steps)
        yield f"| {_md(draft.name)} | {VERDICTS[draft.status]} | {checks} |"
    for draft in report.drafts:
        yield from ("", f"## {_md(draft.name)}: {VERDICTS[draft.status]}", "")
        yield from _md_draft(draft)
    if score is not None:
        yield from ("", "## Against the key", "", "```", *score_lines(score), "```")


def _md_draft(draft: DraftReport) -> Iterator[str]:
    yield f"Run `{draft.run_id}`, trace `{draft.trace_id}`."
    for step in draft.steps:
        yield from ("", f"### {_md(step.step.id)}: {_OUTCOMES[step.outcome]}", "")
        yield f"{_md(step.step.goal)}. {_md(_how(step))}"
        yield from ("", _md(step.why))
        yield from _list(_md(one) for one in (*step.warnings, *_evidence(step)))
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


def _page(report: Report, score: Score | None) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width,initial-scale=1">'
    yield f"<title>Content QA: {VERDICTS[report.status]}</title><style>{_STYLE}</style></head>"
    verdict = f'<span class="{report.status}">{VERDICTS[report.status]}</span>'
    yield f"<body><h1>Content QA: {verdict}</h1><p>{_h(counts(report))}</p>"
    yield "<table><thead><tr><th>Draft<th>Status<th>Checks</tr></thead><tbody>"
    for number, draft in enumerate(report.drafts):
        checks = ", ".join(_badge(s.step.id, s.outcome) for s in draft.steps)
        named = f'<a href="#d{number}">{_h(draft.name)}</a>'
        status = _badge(VERDICTS[draft.status], draft.status)
        yield f"<tr><td>{named}<td>{status}<td>{checks}</tr>"
    yield "</tbody></table>"
    for number, draft in enumerate(report.drafts):
        yield from _html_draft(number, draft)
    if score is not None:
        lines = "\n".join(score_lines(score))
        yield f"<h2>Against the key</h2><pre>{_h(lines)}</pre>"
    yield "</body></html>"


def _html_draft(number: int, draft: DraftReport) -> Iterator[str]:
    status = _badge(VERDICTS[draft.status], draft.status)
    yield f'<h2 id="d{number}">{_h(draft.name)}: {status}</h2>'
    yield f"<p>Run <code>{_h(draft.run_id)}</code>, trace <code>{draft.trace_id}</code>.</p>"
    for step in draft.steps:
        yield f"<h3>{_h(step.step.id)}: {_badge(_OUTCOMES[step.outcome], step.outcome)}</h3>"
        yield f"<p>{_h(step.step.goal)}. {_h(_how(step))}</p><p>{_h(step.why)}</p>"
        yield from _html_list((*step.warnings, *_evidence(step)))
    if draft.over:
        yield "<p>Over budget:</p>"
        yield from _html_list(draft.over)
    if draft.proposals:
        yield "<p>Proposals:</p>"
        yield from _html_list(draft.proposals)


def _html_list(items: tuple[str, ...]) -> Iterator[str]:
    if items:
        yield "<ul>" + "".join(f"<li>{_h(item)}" for item in items) + "</ul>"


def _how(step: StepReport) -> str:
    """Return how sure the answer is, who gave it, and what it took."""
    result = step.result
    sure = f"Confidence {result['confidence']:g} of {step.step.min_confidence:g} wanted"
    by = f", decided by {step.decided_by}" if step.decided_by else ", not decided"
    took = "reused from earlier" if step.cached else f"{result['elapsed_ms']} ms"
    tokens = f", {result['tokens_used']} tokens" if result["tokens_used"] else ""
    return f"{sure}{by}; {step.attempts} of {step.step.max_attempts} attempts, {took}{tokens}."


def _evidence(step: StepReport) -> tuple[str, ...]:
    evidence = step.result["evidence"]
    listed = evidence if isinstance(evidence, list) else []
    return tuple(str(one["content"]) for one in listed if isinstance(one, dict))


def _badge(text: str, kind: str) -> str:
    return f'<span class="{kind}">{_h(text)}</span>'


def _h(text: str) -> str:
    return html.escape(_CONTROL.sub("\ufffd", text))


def _md(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(_CONTROL.sub("\ufffd", text).split()))
