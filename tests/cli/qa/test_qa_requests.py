"""What may be asked of `qa` and its sister recipes, and what is refused before it begins."""

import json
import os
from pathlib import Path

import pytest

from tests.support.command_line import Ask

CHECKLIST = "- Verify tone matches brand voice\n- Required phrases\n- No known misspelling\n"
SEED = {
    "plan_id": "uuid",
    "steps": [
        {
            "id": "tone-check",
            "goal": "Verify tone matches brand voice",
            "max_attempts": 2,
            "min_confidence": 0.7,
            "time_budget_sec": 45,
        }
    ],
    "overall_budget": {"max_attempts": 6, "max_tokens": 6000, "time_budget_sec": 240},
}
DRAFT = "# A letter\n\nWe recieved it.\n"


@pytest.fixture
def drafts(folder: Path) -> Path:
    (folder / "checklist.yaml").write_text(CHECKLIST)
    (folder / "checklist.json").write_text(json.dumps(SEED))
    (folder / "a.md").write_text(DRAFT)
    return folder


def inbox(ask: Ask) -> list[object]:
    items: list[object] = ask("inbox", "--json").json["items"]
    return items


def test_a_report_is_never_written_over_a_draft(drafts: Path, ask: Ask) -> None:
    os.link(drafts / "a.md", drafts / "same.md")

    for place in ("a.md", "./a.md", "same.md"):
        done = ask("qa", "a.md", "--checklist", "checklist.yaml", "--report", place)

        assert done.code == 2
        assert f"report {place!r}".replace("./", "") in done.err.replace("./", "")
        assert "is the draft 'a.md'" in done.err
    assert (drafts / "a.md").read_text() == DRAFT
    assert inbox(ask) == []


def test_a_report_is_never_written_over_what_the_checks_go_by(drafts: Path, ask: Ask) -> None:
    (drafts / "key.json").write_text("")
    (drafts / "style").mkdir()
    (drafts / "style" / "a.yml").write_text(
        "extends: existence\nmessage: x\ntokens: [foo]\nlevel: error\n"
    )
    (drafts / "named.yaml").write_text("- {id: tone, goal: brand tone, context: Use style/}\n")

    over = ask("qa", "a.md", "--checklist", "checklist.json", "--report", "checklist.json")
    inside = ask("qa", "a.md", "--checklist", "named.yaml", "--report", "style/report.md")

    assert (over.code, inside.code) == (2, 2)
    assert "is the checklist 'checklist.json'" in over.err
    assert "lies in the rules" in inside.err
    assert json.loads((drafts / "checklist.json").read_text()) == SEED


def test_a_plan_document_is_a_checklist(drafts: Path, ask: Ask) -> None:
    done = ask("qa", "a.md", "--checklist", "checklist.json", "--json")

    assert done.code == 0
    plan = done.json["drafts"][0]["plan"]
    assert plan["steps"] == SEED["steps"]
    assert plan["overall_budget"] == SEED["overall_budget"]


def test_a_folder_as_a_draft_is_bad_usage_and_posts_nothing(drafts: Path, ask: Ask) -> None:
    done = ask("qa", ".", "--checklist", "checklist.yaml")

    assert done.code == 2
    assert "draft '.' is a folder, expected a file" in done.err
    assert inbox(ask) == []


def test_words_and_lists_of_words_are_told_apart(drafts: Path, ask: Ask) -> None:
    (drafts / "words.txt").write_text("recieved\n")
    request = ("qa", "a.md", "--checklist", "checklist.yaml", "--json")

    word = ask(*request, "--accept", "recieved")
    listed = ask(*request, "--accept-list", "words.txt")
    mixed_up = ask(*request, "--accept", "words.txt")
    missing = ask(*request, "--accept-list", "nowhere.txt")

    assert (word.code, listed.code) == (0, 0)
    assert (mixed_up.code, missing.code) == (2, 2)
    assert "accept 'words.txt' is a file, expected words; --accept-list takes" in mixed_up.err
    assert "accept list 'nowhere.txt' is not there" in missing.err


def test_sister_recipes_take_the_same_requests(drafts: Path, ask: Ask) -> None:
    request = ("run", "documentation-review", "a.md", "--offline", "--report")

    done = ask(*request, "r.json", "--min-confidence", "0.99")
    over = ask(*request, "a.md")

    assert done.code == 7
    report = json.loads((drafts / "r.json").read_text())
    steps = report["drafts"][0]["plan"]["steps"]
    assert {step["min_confidence"] for step in steps} == {0.99}
    assert over.code == 2
    assert "is the draft 'a.md'" in over.err


def test_what_is_meant_for_drafts_is_refused_for_a_plan(drafts: Path, ask: Ask) -> None:
    done = ask("run", "code-fix", "false", "a.md", "--report", "r.md")

    assert done.code == 2
    assert "--report goes with a recipe that checks drafts" in done.err


def test_remarks_are_counted_and_where_the_others_are_is_true(drafts: Path, ask: Ask) -> None:
    links = "".join(f"[{n}](no-{n}.md)\n" for n in range(300))
    (drafts / "many.md").write_text(f"# Many\n\n{links}")
    (drafts / "links.yaml").write_text("- Check every link\n")
    request = ("qa", "many.md", "--checklist", "links.yaml", "--offline")

    told = ask(*request, "--report", "r.html")
    data = ask(*request, "--json").json["drafts"][0]["steps"][0]

    assert "and 295 more; --report FILE names the 200 gravest of 300" in told.out
    assert "the 200 gravest of 300 remarks" in (drafts / "r.html").read_text()
    assert (data["remarks_in_all"], len(data["remarks"])) == (300, 200)


def test_a_check_is_not_asked_questions(drafts: Path, ask: Ask) -> None:
    ask("qa", "a.md", "--checklist", "checklist.yaml")

    asked = ask("review", "spelling-check", "--ask", "why")
    answered = ask("review", "spelling-check", "--answer", "fine")
    again = ask("review", "spelling-check", "--reject", "no", "--again")

    assert (asked.code, answered.code, again.code) == (2, 2, 2)
    assert "spelling-check" in asked.err
    assert "expected --approve or --reject" in asked.err
    assert len(inbox(ask)) == 1


def test_a_rejected_check_has_failed_at_once(drafts: Path, ask: Ask) -> None:
    ask("qa", "a.md", "--checklist", "checklist.yaml")

    done = ask("review", "spelling-check", "--reject", "wrong word", "--as", "eve", "--json")

    assert done.json["status"] == "failed"
    assert inbox(ask) == []
    report = ask("qa", "a.md", "--checklist", "checklist.yaml", "--json")
    step = report.json["drafts"][0]["steps"][2]
    assert (step["outcome"], step["decided_by"]) == ("failed", "eve")
    assert step["remarks"][0]["line"] == 3


def test_an_approval_is_shown_as_a_persons_in_every_form(drafts: Path, ask: Ask) -> None:
    request = ("qa", "a.md", "--checklist", "checklist.yaml")
    ask(*request)
    ask("review", "spelling-check", "--approve", "--as", "eve")

    done = ask(*request, "--report", "r.md", "--report", "r.html")

    assert done.code == 0
    assert "approved by eve" in done.out.splitlines()[1]
    assert "spelling-check approved by eve" in (drafts / "r.md").read_text()
    assert ">approved by eve<" in (drafts / "r.html").read_text()


def test_a_report_follows_what_is_looked_at_the_next_time(drafts: Path, ask: Ask) -> None:
    tight = {"steps": ["brand tone", "required phrases"], "overall_budget": {"max_attempts": 1}}
    (drafts / "tight.json").write_text(json.dumps(tight))
    request = ("qa", "a.md", "--checklist", "tight.json", "--offline")
    first = ask(*request, "--report", "r.json")

    second = ask(*request)

    assert (first.code, second.code) == (7, 0)
    assert "r.json was written again" in second.err
    report = json.loads((drafts / "r.json").read_text())
    assert report["status"] == "pass"
    assert inbox(ask) == []


def test_metrics_count_the_checks_and_their_budget(drafts: Path, ask: Ask) -> None:
    tight = {"steps": ["brand tone", "required phrases"], "overall_budget": {"max_attempts": 1}}
    (drafts / "tight.json").write_text(json.dumps(tight))
    ask("qa", "a.md", "--checklist", "tight.json", "--offline")

    told = ask("metrics", "--json").json

    assert told["tasks"] == 2
    assert told["people"]["escalation_rate"]["of"] == 2
    assert [one["over"] for one in told["budgets"]["runs"]] == [["attempts"]]
