"""The example drafts get the verdicts of their key, as far as is promised."""

import json
from pathlib import Path
from typing import Any, Final

import anyio

from agent_run.executors.content.checking import Checker, check_file
from agent_run.executors.content.classifier import starter_model
from agent_run.executors.content.compliance import ComplianceChecker
from agent_run.executors.content.lexicon import load_lexicon
from agent_run.executors.content.links import LinkChecker
from agent_run.executors.content.rulebook import starter_rules
from agent_run.executors.content.spelling import SpellingChecker
from agent_run.executors.content.tone import ToneChecker

FOLDER: Final = Path(__file__).parents[3] / "examples" / "content-qa"


def checkers() -> dict[str, Checker]:
    return {
        "tone-check": ToneChecker(starter_rules()),
        "compliance-check": ComplianceChecker(
            load_lexicon(FOLDER / "lexicon.yaml"), starter_model()
        ),
        "link-check": LinkChecker(offline=True),
        "spelling-check": SpellingChecker(),
    }


def key() -> list[dict[str, Any]]:
    lines = (FOLDER / "key.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_every_defect_of_the_key_stands_where_it_says() -> None:
    for row in key():
        lines = (FOLDER / row["draft"]).read_text("utf-8").splitlines()
        for defect in row["defects"]:
            assert defect["quote"] in lines[defect["line"] - 1]


def test_sure_verdicts_agree_with_the_key_and_most_defects_are_found() -> None:
    known = checkers()
    wanted = hit = sure = agreed = 0
    for row in key():
        check = anyio.run(check_file, FOLDER / row["draft"], known[row["step"]])
        places = {one.line for one in check.remarks}
        wanted += len(row["defects"])
        hit += sum(defect["line"] in places for defect in row["defects"])
        if check.confidence >= 0.7:
            sure += 1
            agreed += check.status == row["status"]

    assert len(key()) == 32
    assert agreed / sure >= 0.95
    assert sure >= 28
    assert hit / wanted >= 0.9
