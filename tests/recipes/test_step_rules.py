"""What a step goes by, and within what: its files, its hosts, its time, its model."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_run.errors import InvalidDocument
from agent_run.executors.content.drafts import Draft, draft_of
from agent_run.executors.content.remarks import Check
from agent_run.gates.cache import FileCache
from agent_run.models.scripted import ScriptedModel, Turn
from agent_run.recipes.asking import asker_for
from agent_run.recipes.qa.checklist import Checklist, Step
from agent_run.recipes.qa.looking import looks_at, time_to_look
from agent_run.recipes.qa.rules import Rules, host_names, open_checkers, rules_for
from tests.executors.content.server import Site, served
from tests.recipes.support import CLEAN, check, draft, opened, outcomes, wanted

TODAY = date(2026, 11, 16)


@pytest.fixture
def site() -> Iterator[Site]:
    with served() as running:
        yield running


def step(goal: str, context: str = "", **more: Any) -> Step:
    checklist = {"steps": [{"id": "a", "goal": goal, "context": context, **more}]}
    return Checklist.model_validate(checklist).steps[0]


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ("Use /docs/brand/tone.md", "'/docs/brand/tone.md' is named in the context and is not"),
        ("Use guide.md.", "'guide.md' is named in the context and is not used: no check"),
        ("See words.txt", "'words.txt' is named in the context and is not there"),
        ("Use brand/voice.dat", "'brand/voice.dat' is named"),
    ],
)
def test_a_file_that_is_named_and_not_used_is_told(
    tmp_path: Path, context: str, said: str
) -> None:
    (tmp_path / "guide.md").write_text("Be kind.")

    rules = rules_for(step("brand tone", context), tmp_path, Rules())

    assert len(rules.unused) == 1
    assert said in rules.unused[0]


@pytest.mark.parametrize(
    "context",
    [
        "",
        "e.g. and/or 24/7, i.e. 1/2.5 of it",
        "ask example.com",
        "see https://a.test/tone.html",
    ],
)
def test_words_that_name_no_file_are_left_alone(tmp_path: Path, context: str) -> None:
    assert rules_for(step("brand tone", context), tmp_path, Rules()).unused == ()


def test_a_file_that_another_one_wins_over_is_told(tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text("forbidden: [{id: a, phrases: [x]}]")
    legal = step("legal phrases", "Use one.yaml and two.yaml")

    chosen = rules_for(legal, tmp_path, Rules())
    given = rules_for(legal, tmp_path, Rules(lexicon="mine.yaml"))

    assert chosen.lexicon == str(tmp_path / "one.yaml")
    assert chosen.unused == (
        "'two.yaml' is named in the context and is not used: 'one.yaml' is gone by instead",
    )
    assert given.lexicon == "mine.yaml"
    assert len(given.unused) == 2


def test_what_was_not_used_stands_in_the_report(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    checklist = {"steps": [{"id": "a", "goal": "brand tone", "context": "Use tone.md"}]}

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path, checklist))

    assert outcomes(report) == {"a": "passed"}
    assert "'tone.md' is named in the context" in report.steps[0].warnings[0]


def test_hosts_are_allowed_by_the_step_and_by_the_caller(tmp_path: Path, site: Site) -> None:
    port = site.url.rsplit(":", 1)[1]
    text = draft_of(f"<{site.url}/ok> <http://localhost:{port}/ok>")
    links = step("links", allow_hosts=["127.0.0.1"])

    def looked(given: Rules) -> Check:
        checker = open_checkers(rules_for(links, tmp_path, given), ("links",))["links"]
        return anyio.run(checker.check, text)

    assert [one.rule for one in looked(Rules()).remarks] == ["links.private"]
    assert looked(Rules(allow_hosts=("LocalHost",))).remarks == ()


@pytest.mark.parametrize("name", ["http://a.test", "a.test:80", "a test", "", "*.test", "a/b"])
def test_what_is_no_name_of_a_host_is_refused(name: str) -> None:
    with pytest.raises(InvalidDocument, match="is not the name of a host"):
        host_names([name])


def test_the_time_of_the_step_reaches_the_links(tmp_path: Path, site: Site) -> None:
    links = "".join(f"[{number}]({site.url}/slow/{number}) " for number in range(8))
    drafts = [draft(tmp_path, "slow.md", f"{links}[gone](nope.md)")]
    checklist = {
        "steps": [
            {"id": "a", "goal": "links", "time_budget_sec": 2, "allow_hosts": ["127.0.0.1"]}
        ]
    }
    asked = wanted(tmp_path, checklist)

    with opened(tmp_path) as desk:
        online = check(
            tmp_path, desk, drafts, type(asked)(asked.checklist, tmp_path, Rules(), asked.today)
        )

    found = online.steps[0]
    assert (found.outcome, found.attempts) == ("failed", 1)
    assert "9 links: 1 broken, 8 could not be checked" in found.why
    assert found.over == ()


class _Slow:
    """A checker that never gets through, and says so."""

    name = "slow"

    def __init__(self) -> None:
        self.given: list[float | None] = []

    def cache_key(self, draft: Draft) -> str:
        return draft.digest

    async def check(self, draft: Draft, *, seconds: float | None = None) -> Check:
        self.given.append(seconds)
        return Check("failed", 0.9, "half of it", (), "", whole=False)


def test_what_was_not_looked_at_whole_is_looked_at_again(tmp_path: Path) -> None:
    slow, cache = _Slow(), FileCache(tmp_path)

    async def twice() -> None:
        for _ in range(2):
            await looks_at(draft_of("x"), {"links": slow}, cache, today=TODAY, seconds=5)

    anyio.run(twice)

    assert len(slow.given) == 2
    assert all(given is not None and 0 < given <= 5 for given in slow.given)


def test_time_is_kept_back_to_tell_what_is_known() -> None:
    assert time_to_look(None, model=False) is None
    assert time_to_look(45, model=False) == 43
    assert time_to_look(1, model=False) == pytest.approx(0.8)
    assert time_to_look(45, model=True) == 22.5


def test_an_empty_draft_is_not_passed(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "empty.md", " \n")]

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path))

    assert set(outcomes(report).values()) == {"person"}
    assert "there is nothing to check" in report.steps[0].why


def test_what_nobody_looked_at_has_no_confidence_in_the_ledger(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path, ("Is it kind",)))
        record = desk.run(report.drafts[0].run_id).tasks["goal-1"].record

    assert record is not None
    assert record.confidence is None
    assert report.steps[0].result["confidence"] == 0


def test_the_model_that_was_asked_is_named_where_costs_are_counted(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    said = {"status": "passed", "confidence": 0.9, "notes": "so"}
    model = ScriptedModel([Turn(output=said, tokens_in=300, tokens_out=50)])

    with opened(tmp_path) as desk:
        asked = wanted(tmp_path, ("Is it true", "links"), model="scripted")
        report = check(tmp_path, desk, drafts, asked, asker_for(desk, model))
        tasks = desk.run(report.drafts[0].run_id).tasks
        seen: Any = {name: tasks[name].observed for name in ("goal-1", "link-check")}

    assert seen["goal-1"]["model"] == model.name
    assert not seen["link-check"].get("model")
