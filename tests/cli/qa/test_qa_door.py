"""Content QA and the other recipes through the door."""

import json
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agent_run.cli.speech import Speech
from agent_run.cli.work.recipes import second_act
from agent_run.wiring import open_desk
from tests.support.command_line import Ask

CHECKLIST = "- Verify tone matches brand voice\n- Check every link\n- No known misspelling\n"
CLEAN = "# A kettle\n\nThe kettle boils a litre of water in four minutes.\n"
FLAWED = "# A letter\n\nWe recieved the letter. Read [more](nowhere.md).\n"
HOSTILE = (
    "# <script>alert(1)</script>\n\n"
    "We recieved <img src=x onerror=alert(2)> | `a` \x1b[31m [x](no|where.md)\n"
)


@pytest.fixture
def drafts(folder: Path) -> Path:
    (folder / "checklist.yaml").write_text(CHECKLIST)
    (folder / "clean.md").write_text(CLEAN)
    (folder / "flawed.md").write_text(FLAWED)
    return folder


def test_the_exit_code_says_pass_fail_or_needs_a_person(drafts: Path, ask: Ask) -> None:
    (drafts / "open.yaml").write_text("- Would a child understand it\n")

    assert ask("qa", "clean.md", "--checklist", "checklist.yaml").code == 0
    assert ask("qa", "flawed.md", "--checklist", "checklist.yaml").code == 1
    assert ask("qa", "clean.md", "--checklist", "open.yaml").code == 7
    assert ask("qa", "clean.md", "flawed.md", "--checklist", "open.yaml").code == 7


def test_what_failed_is_shown_with_its_place_and_waits_in_the_inbox(
    drafts: Path, ask: Ask
) -> None:
    done = ask("qa", "clean.md", "flawed.md", "--checklist", "checklist.yaml")

    assert "3:4 error 'recieved' is a known misspelling" in done.out
    assert "2 drafts: 1 pass, 1 fail" in done.out
    items = ask("inbox", "--json").json["items"]
    assert {item["task_id"] for item in items} == {"link-check", "spelling-check"}


def test_the_second_time_everything_is_reused_and_said_so(drafts: Path, ask: Ask) -> None:
    ask("qa", "flawed.md", "--checklist", "checklist.yaml")

    again = ask("qa", "flawed.md", "--checklist", "checklist.yaml", "--json").json
    fresh = ask("qa", "flawed.md", "--checklist", "checklist.yaml", "--fresh", "--json").json

    assert again["totals"]["cache_hits"] == 3
    assert fresh["totals"]["cache_hits"] == 0
    assert again["drafts"][0]["run_id"] != fresh["drafts"][0]["run_id"]


def test_an_approval_in_the_inbox_counts_in_the_next_report(drafts: Path, ask: Ask) -> None:
    done = ask("qa", "flawed.md", "--checklist", "checklist.yaml", "--json").json
    run_id = done["drafts"][0]["run_id"]
    for step in ("link-check", "spelling-check"):
        assert ask("review", f"{run_id}/{step}", "--approve").code == 0

    report = ask("qa", "flawed.md", "--checklist", "checklist.yaml", "--json")

    assert report.code == 0
    by = {step["step_id"]: step["decided_by"] for step in report.json["drafts"][0]["steps"]}
    assert by == {"tone-check": "checks", "link-check": "ada", "spelling-check": "ada"}


def test_the_report_is_written_in_every_format(drafts: Path, ask: Ask) -> None:
    names = ("r.md", "r.json", "r.html")
    options = [word for name in names for word in ("--report", name)]

    done = ask("qa", "flawed.md", "--checklist", "checklist.yaml", *options)

    assert done.code == 1
    assert (drafts / "r.md").read_text().startswith("# Content QA: FAIL\n")
    assert json.loads((drafts / "r.json").read_text())["status"] == "fail"
    assert "prefers-color-scheme:dark" in (drafts / "r.html").read_text()


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)


def test_a_hostile_draft_is_only_text_in_the_reports(drafts: Path, ask: Ask) -> None:
    (drafts / "hostile.md").write_text(HOSTILE)
    names = ("--report", "r.html", "--report", "r.md")

    done = ask("qa", "hostile.md", "--checklist", "checklist.yaml", *names)

    assert done.code == 1
    assert "\x1b" not in done.out
    tags = Tags()
    tags.feed((drafts / "r.html").read_text())
    assert tags.seen.isdisjoint({"script", "img"})
    assert "<img" not in (drafts / "r.md").read_text().replace("\\<img", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no.md", "--checklist", "checklist.yaml"), "draft 'no.md' is not there"),
        (("clean.md", "--checklist", "no.yaml"), "cannot be read"),
        (("clean.md", "--checklist", "checklist.yaml", "--report", "x.pdf"), "ends in '.pdf'"),
        (("clean.md", "--checklist", "checklist.yaml", "--report", "f.md"), "it is a folder"),
        (("clean.md", "--checklist", "checklist.yaml", "--key", "clean.md"), "clean.md:1"),
        (("clean.md", "--checklist", "checklist.yaml", "--style", "no"), "'no' is not there"),
        (("clean.md", "--checklist", "checklist.yaml", "--model", "x"), "no provider"),
    ],
)
def test_a_wrong_request_gets_one_sentence_and_leaves_nothing(
    drafts: Path, ask: Ask, arguments: tuple[str, ...], said: str
) -> None:
    (drafts / "f.md").mkdir()

    done = ask("qa", *arguments)

    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_dry_run_shows_the_plan_and_checks_nothing(drafts: Path, ask: Ask) -> None:
    done = ask("qa", "flawed.md", "--checklist", "checklist.yaml", "--dry-run", "--json")

    assert done.code == 0
    assert [step["id"] for step in done.json["plans"][0]["plan"]["steps"]] == [
        "tone-check",
        "link-check",
        "spelling-check",
    ]
    assert not (drafts / ".agent-run").exists()


def test_what_every_step_stumbles_over_is_said_once(drafts: Path, ask: Ask) -> None:
    (drafts / "binary.md").write_bytes(b"a\0b\n")

    done = ask("qa", "binary.md", "--checklist", "checklist.yaml")

    assert done.code == 7
    assert done.out.count("looks binary") == 1
    assert "tone-check, link-check and spelling-check: draft 'binary.md' looks" in done.out


def test_a_broken_link_is_named_and_what_is_not_shown_is_counted(
    drafts: Path, ask: Ask
) -> None:
    (drafts / "many.md").write_text("\n".join(f"[x](no{n}.md)" for n in range(500)))

    done = ask("qa", "many.md", "--checklist", "checklist.yaml", "--offline")

    assert "1:5 error 'no0.md' is not there" in done.out
    assert "500 links: 500 broken; 1:5 'no0.md' is not there" in done.out
    assert "and 495 more; --report FILE names the 200 gravest of 500" in done.out


def test_accepted_words_are_spelled_right(drafts: Path, ask: Ask) -> None:
    (drafts / "only.yaml").write_text("- spelling\n")

    done = ask("qa", "flawed.md", "--checklist", "only.yaml", "--accept", "recieved,teh")

    assert done.code == 0


def test_what_is_not_installed_is_named(
    drafts: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("agent_run.")]:
        if ".recipes." in name or ".executors.content" in name or name.endswith(".work.qa"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "regex", None)

    done = ask("qa", "clean.md", "--checklist", "checklist.yaml")

    assert done.code == 3
    assert "needs 'regex', which is not installed; install 'agent-run[qa]'" in done.err


def test_a_model_that_disagrees_sends_the_step_to_a_person(drafts: Path, ask: Ask) -> None:
    answer = {
        "status": "failed",
        "confidence": 0.9,
        "notes": "how large is it",
        "quotes": ["four minutes"],
    }
    (drafts / "script.json").write_text(json.dumps([{"output": answer}]))
    (drafts / "tone.yaml").write_text("- brand tone\n")
    request = ("qa", "clean.md", "--checklist", "tone.yaml", "--json")

    assert ask(*request).code == 0
    read = ask(*request, "--model", "scripted:script.json")

    assert read.code == 7
    assert "they disagree" in read.json["drafts"][0]["steps"][0]["why"]


def test_the_second_act_of_the_demo_shows_real_numbers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = open_desk(f"sqlite:///{folder / 'state' / 'ledger.db'}")

    told = second_act(Speech(), desk, folder / "state")
    desk.close()

    assert told is not None
    assert told["again"] == {"cache_hits": 32, "steps": 32}
    assert "precision        1.000  11 of 11 failed rightly" in capsys.readouterr().out


def test_a_recipe_is_run_by_its_name(drafts: Path, ask: Ask) -> None:
    done = ask("run", "documentation-review", "clean.md", "--json")

    assert done.code == 0
    assert done.json["totals"]["steps"] == 3
    assert ask("run", "documentation-review").code == 2
    assert ask("run", "checklist.yaml", "more").code == 2


def test_a_code_fix_is_planned_for_any_executor(drafts: Path, ask: Ask) -> None:
    fix = ("run", "code-fix", "true", "clean.md", "--command", "true", "--dry-run")

    assert ask(*fix).code == 0
    assert ask("run", "code-fix", "true").code == 2


@pytest.mark.slow
def test_a_configuration_is_answered_by_another_process(folder: Path, start: Ask) -> None:
    wish = "Whenever a ticket is opened in Jira I want a message in Slack."
    asked = start("configure", wish, "--run", "c1", "--json")
    assert asked.code == 7
    waiting = asked.json["waiting"][0]
    assert waiting["task_id"] == "event_config"
    assert waiting["answer_schema"]["required"] == ["event"]

    wrong = start("review", "c1/event_config", "--answer", '{"event": 5}')
    assert wrong.code == 2
    assert start("review", "c1/event_config", "--answer", '{"event": "new"}').code == 0
    assert start("resume", "c1", "--json").json["waiting"][0]["task_id"] == "integration_config"
    answer = '{"jira": {}, "slack": {"channel": "#a"}}'
    assert start("review", "c1/integration_config", "--answer", answer).code == 0
    done = start("resume", "c1", "--json")

    assert done.code == 0
    assert done.json["phase"] == "done"
    assert done.json["configuration"]["complete"] is True
    assert done.json["summary"].startswith("Configured by")
