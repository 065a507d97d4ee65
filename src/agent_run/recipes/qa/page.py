"""The report as one HTML page: the verdict, the drafts at a glance, then what to do about each.

Drafts, checklists and models are strangers: nothing they say is taken for markup.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from agent_run.ledger.sheet.parts import (
    Grid,
    Markup,
    Mood,
    Tile,
    pill,
    prose,
    table,
    tiles,
    whole_page,
    words,
)
from agent_run.recipes.qa.reporting import DraftReport, Report, StepReport, Verdict
from agent_run.recipes.qa.scoring import Score, score_rows
from agent_run.recipes.qa.wording import VERDICTS, counts, evidence, how, standing

_MOODS: Final[Mapping[str, Mood]] = {
    "pass": "good",
    "passed": "good",
    "fail": "bad",
    "failed": "bad",
    "person": "warn",
    "error": "bad",
    "warning": "warn",
}
_TILES: Final[Sequence[tuple[Verdict, str]]] = (
    ("fail", "fail"),
    ("person", "need a person"),
    ("pass", "pass"),
)
_ORDER: Final = ("failed", "person", "passed")
_LONGEST_NAME: Final = 120


def to_html(report: Report, score: Score | None) -> str:
    """Return the report as one page: no script, nothing to fetch, light or dark."""
    return whole_page(f"Content QA: {VERDICTS[report.status]}", _body(report, score))


def _body(report: Report, score: Score | None) -> Iterator[Markup]:
    verdict = pill(VERDICTS[report.status], _MOODS[report.status])
    folder, names = _short_names(report)
    where = f" Folder: <code>{words(folder)}</code>" if folder else ""
    yield Markup(f"<h1>Content QA: {verdict}</h1>")
    yield Markup(f'<p class="soft">{words(counts(report))}.{where}</p>')
    yield tiles(_tiles(report))
    yield from _waiting(report)
    yield Markup('<h2 id="drafts">Drafts</h2>\n<ul class="rows">')
    for number, draft in enumerate(report.drafts):
        yield _line(number, names[number], draft)
    yield Markup("</ul>")
    for number, draft in enumerate(report.drafts):
        yield from _draft(number, names[number], draft)
    if score is not None:
        rows = [[words(cell.strip()) for cell in row] for row in score_rows(score)]
        head = ("What", "Value", "From")
        yield Markup('<h2 id="key">Against the key</h2>')
        yield table(Grid("score", Markup("How good the checks are"), head, rows, (1,)))


def _tiles(report: Report) -> Iterator[Tile]:
    found = [draft.status for draft in report.drafts]
    whole = f"of {len(found)} draft{'' if len(found) == 1 else 's'}"
    for status, name in _TILES:
        count = found.count(status)
        yield Tile(name, str(count), whole, _MOODS[status] if count else "")


def _waiting(report: Report) -> Iterator[Markup]:
    count = sum(step.waits for step in report.steps)
    if count:
        said = "1 check stands" if count == 1 else f"{count} checks stand"
        yield Markup(
            f'<p class="card warn">{said} in the inbox until the draft is mended and checked '
            "again, or a person decides: <code>agent-run inbox</code></p>"
        )


def _line(number: int, name: str, draft: DraftReport) -> Markup:
    shown = words(name, longest=_LONGEST_NAME)
    verdict = pill(VERDICTS[draft.status], _MOODS[draft.status])
    open_ones = [
        pill(f"{step.step.id}: {standing(step)}", _MOODS[step.outcome], to=anchor)
        for anchor, step in _anchored(number, draft)
        if step.outcome != "passed"
    ]
    passed = f"{len(draft.steps) - len(open_ones)} of {len(draft.steps)} checks passed"
    checks = " ".join((*open_ones, f'<span class="soft">{passed}</span>'))
    return Markup(
        f'<li><a href="#d{number}">{shown}</a><span>{verdict}</span><span>{checks}</span></li>'
    )


def _draft(number: int, name: str, draft: DraftReport) -> Iterator[Markup]:
    verdict = pill(VERDICTS[draft.status], _MOODS[draft.status])
    shown = words(name, longest=_LONGEST_NAME)
    yield Markup(f'<section aria-labelledby="d{number}">')
    yield Markup(f'<h2 id="d{number}">{shown}: {verdict}</h2>')
    yield from _remembered("Over budget", draft.over)
    quiet = [pair for pair in _anchored(number, draft) if _is_quiet(pair[1])]
    for anchor, step in _anchored(number, draft):
        if not _is_quiet(step):
            yield from _step(anchor, step, draft.run_id)
    if draft.waiting:
        again = f"<code>agent-run resume {words(draft.run_id)}</code>"
        yield Markup(f"<p>After a decision, {again} writes this report again.</p>")
    if quiet:
        plural = "" if len(quiet) == 1 else "s"
        yield Markup(f"<details><summary>{len(quiet)} check{plural} passed</summary>")
        for anchor, step in quiet:
            yield from _step(anchor, step, draft.run_id)
        yield Markup("</details>")
    yield from _remembered("Proposals", draft.proposals)
    ids = f"Run <code>{words(draft.run_id)}</code>, trace <code>{words(draft.trace_id)}</code>"
    yield Markup(f'<p class="soft"><small>{ids}</small></p></section>')


def _is_quiet(step: StepReport) -> bool:
    """Whether nobody has to read more than that it passed."""
    return step.outcome == "passed" and not (step.decision or step.over or step.warnings)


def _step(anchor: str, step: StepReport, run_id: str) -> Iterator[Markup]:
    mood = _MOODS[step.outcome]
    outcome = pill(standing(step), mood)
    name = words(step.step.id)
    yield Markup(f'<section class="card {mood}" aria-labelledby="{anchor}">')
    yield Markup(f'<h3 id="{anchor}">{name}: {outcome}</h3>')
    yield Markup(f"<p>{words(step.step.goal)}</p>")
    yield Markup(f'<p class="said">{prose(step.why)}</p>')
    if step.overruled:
        yield Markup(f'<p class="said soft">{prose(step.overruled)}</p>')
    yield from _list(step.warnings)
    if step.remarks:
        yield _remarks(anchor, step)
    else:
        yield from _list(evidence(step))
    yield Markup(f'<p class="soft"><small>{words(how(step))}</small></p>')
    if step.waits:
        yield Markup(f"<p>{_deciding(run_id, step.step.id)}</p>")
    yield Markup("</section>")


def _remarks(anchor: str, step: StepReport) -> Markup:
    rows = [
        [
            words(f"{one['line']}:{one['column']}"),
            Markup(f"{_level(str(one['severity']))} {words(str(one['message']))}"),
            words(str(one["quote"])),
            words(str(one.get("suggestion") or "")),
        ]
        for one in step.remarks
    ]
    head = ["Line", "Remark", "Quote", "Better"]
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    shown = f"the {len(rows)} gravest of {step.found}" if len(rows) < step.found else len(rows)
    caption = Markup(f"{shown} remark{'' if step.found == 1 else 's'}")
    return table(Grid(f"{anchor}-remarks", caption, head, rows, (0,)))


def _level(severity: str) -> Markup:
    return pill(severity, _MOODS.get(severity, ""))


def _deciding(run_id: str, step_id: str) -> str:
    command = f"agent-run review {words(run_id)}/{words(step_id)}"
    return (
        f"Let it pass as it is with <code>{command} --approve</code> "
        "or fail it for good with <code>--reject REASON</code> instead"
    )


def _remembered(title: str, items: Sequence[str]) -> Iterator[Markup]:
    if items:
        yield Markup(f'<p class="soft">{words(title)}:</p>')
        yield from _list(items)


def _list(items: Iterable[str]) -> Iterator[Markup]:
    told = "".join(f"<li>{prose(item)}</li>" for item in items)
    if told:
        yield Markup(f"<ul>{told}</ul>")


def _anchored(number: int, draft: DraftReport) -> list[tuple[str, StepReport]]:
    """Return the steps with their ids on the page, those first that need a reader."""
    found = [(f"d{number}-{place}", step) for place, step in enumerate(draft.steps)]
    return sorted(found, key=lambda pair: _ORDER.index(pair[1].outcome))


def _short_names(report: Report) -> tuple[str, list[str]]:
    """Return the folder that all drafts share, and their names inside it."""
    paths = [PurePath(draft.name) for draft in report.drafts]
    shared = paths[0].parent if paths else PurePath()
    while any(shared not in (path, *path.parents) for path in paths):
        if shared == shared.parent:
            return "", [draft.name for draft in report.drafts]
        shared = shared.parent
    if shared == PurePath():
        return "", [draft.name for draft in report.drafts]
    return str(shared), [str(path.relative_to(shared)) for path in paths]
