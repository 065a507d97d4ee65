"""Whatever stands in the file, each checker ends with a check."""

import os
import time
from pathlib import Path
from typing import Final

import anyio
import pytest

from agent_run.errors import InvalidDocument
from agent_run.executors.content.checking import Checker, check_file
from agent_run.executors.content.classifier import starter_model
from agent_run.executors.content.compliance import ComplianceChecker
from agent_run.executors.content.drafts import decode, read_draft
from agent_run.executors.content.lexicon import starter_lexicon
from agent_run.executors.content.links import LinkChecker
from agent_run.executors.content.remarks import (
    MOST_EVIDENCE,
    Check,
    Remark,
    blocked,
    to_execution,
    to_record,
)
from agent_run.executors.content.rulebook import starter_rules
from agent_run.executors.content.spelling import SpellingChecker
from agent_run.executors.content.tone import ToneChecker

CHECKERS: Final[dict[str, Checker]] = {
    "tone": ToneChecker(starter_rules()),
    "compliance": ComplianceChecker(starter_lexicon(), starter_model()),
    "links": LinkChecker(offline=True),
    "spelling": SpellingChecker(),
}
UNREADABLE: Final = {
    "binary.md": (b"\x7fELF\x00\x01\x02" * 100, "looks binary"),
    "broken.md": (b"good \xc3\x28 bad", "is not UTF-8: byte 5"),
    "latin.md": ("Stra\u00dfe".encode("latin-1"), "is not UTF-8"),
    "odd16.md": (b"\xff\xfea", "is not UTF-16"),
    "nul16.md": ("\ufeffa\0b".encode("utf-16-le"), "is NUL"),
    "huge.md": (b"a" * 2_100_000, "expected at most 2.0 MB"),
}
READABLE: Final = {
    "empty.md": b"",
    "line.md": b"x" * 1_000_000,
    "words.md": b"teh very unique " * 60_000,
    "links.md": b"[a](b.md#c) <https://a.test/> " * 10_000,
    "script.html": b"<script>" * 50_000 + b"<p onclick='x()'>teh",
    "utf16.md": "\ufeffPlain words here.".encode("utf-16-le"),
    "bom.md": b"\xef\xbb\xbf# Head\n",
    "nested.html": b"<div>" * 100_000,
    "lines.md": b"\n" * 500_000,
}


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_text_blocks_with_one_sentence(
    tmp_path: Path, name: str, checker: str
) -> None:
    raw, said = UNREADABLE[name]
    (tmp_path / name).write_bytes(raw)

    check = anyio.run(check_file, tmp_path / name, CHECKERS[checker])

    assert check.status == "blocked"
    assert said in check.notes
    assert repr(name) in check.notes


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("name", READABLE)
def test_odd_texts_end_in_a_check(tmp_path: Path, name: str, checker: str) -> None:
    (tmp_path / name).write_bytes(READABLE[name])

    started = time.process_time()
    check = anyio.run(check_file, tmp_path / name, CHECKERS[checker])

    assert check.status in {"passed", "failed", "blocked"}
    assert time.process_time() - started < 45
    assert to_record("step", check, 1).status == check.status


def test_fifty_megabytes_are_refused_without_reading(tmp_path: Path) -> None:
    file = tmp_path / "huge.md"
    with file.open("wb") as opened:
        opened.truncate(50_000_000)

    with pytest.raises(InvalidDocument, match=r"is 50\.0 MB"):
        read_draft(file)


def test_a_pipe_or_a_missing_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    for name in ("pipe.md", "missing.md", "."):
        check = anyio.run(check_file, tmp_path / name, CHECKERS["tone"])
        assert check.status == "blocked"


def test_text_behind_a_mark_is_decoded_as_it_says() -> None:
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert decode("Gr\u00fc\u00dfe".encode(encoding), "a") == "Gr\u00fc\u00dfe"


def test_an_execution_has_exactly_the_keys_of_a_checking_step() -> None:
    remark = Remark("r", "error", 2, 3, "words", "message", "better")
    check = Check("failed", 0.9, "notes", (remark,), "key")

    assert to_execution("tone-check", check, 12) == {
        "step_id": "tone-check",
        "status": "failed",
        "confidence": 0.9,
        "notes": "notes",
        "evidence": [
            {"type": "quote", "content": "2:3 error r: message (better) - 'words'"},
        ],
        "tokens_used": 0,
        "elapsed_ms": 12,
        "next_action": "revise",
    }
    record = to_record("tone-check", check, 12)
    assert (record.task_id, record.next_action) == ("tone-check", "revise")


def test_a_record_says_how_many_remarks_it_leaves_out() -> None:
    remark = Remark("links.broken", "error", 1, 1, "", "message")
    check = Check("failed", 0.9, "", (remark,) * (MOST_EVIDENCE + 7), "key")

    evidence = to_record("links", check, 1).evidence

    assert len(evidence) == MOST_EVIDENCE + 1
    assert evidence[-1].content == "7 more remarks, 207 in all; these are the gravest"


def test_of_many_remarks_a_record_carries_the_gravest_in_their_order() -> None:
    light = Remark("links.moved", "suggestion", 1, 1, "", "moved")
    grave = [Remark("links.broken", "error", line, 1, "", "gone") for line in (2, 3)]
    check = Check("failed", 0.9, "", (*[light] * 500, *grave), "key")

    evidence = to_record("links", check, 1).evidence

    assert [one.content[:7] for one in evidence[-3:-1]] == ["2:1 err", "3:1 err"]
    assert evidence[-1].content == "302 more remarks, 502 in all; these are the gravest"


def test_what_is_blocked_has_no_confidence() -> None:
    check = blocked("draft", "nobody could look at it")

    assert to_record("step", check, 1).confidence is None
    assert to_execution("step", check, 1)["confidence"] == 0
    assert to_record("step", Check("blocked", 0.9, "", (), ""), 1).confidence is None


def test_a_remark_says_its_words_once() -> None:
    remark = Remark("spelling", "error", 1, 1, "teh", "'teh' is a known misspelling of 'the'")
    check = Check("failed", 0.9, "", (remark,), "")

    assert to_record("step", check, 1).evidence[0].content.count("teh") == 1


@pytest.mark.parametrize(
    ("text", "held"),
    [(b"", "nothing"), (b" \n\t\n", "nothing"), (b"```\ncode\n```\n", "no words and no links")],
)
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_draft_that_holds_nothing_is_not_passed(
    tmp_path: Path, checker: str, text: bytes, held: str
) -> None:
    (tmp_path / "empty.md").write_bytes(text)

    check = anyio.run(check_file, tmp_path / "empty.md", CHECKERS[checker])

    assert check.status == "blocked"
    assert check.notes == f"there is nothing to check: draft 'empty.md' holds {held}"
