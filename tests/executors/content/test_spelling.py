"""Known misspellings are found in prose, with what they should be."""

from importlib import metadata
from pathlib import Path

import anyio
import pytest

from agent_run.errors import Unfit
from agent_run.executors.content import spelling
from agent_run.executors.content.drafts import draft_of
from agent_run.executors.content.remarks import Check
from agent_run.executors.content.spelling import (
    Correction,
    SpellingChecker,
    parse_list,
    read_accept_list,
)


def spelled(text: str, *accept: str) -> Check:
    return anyio.run(SpellingChecker(frozenset(accept)).check, draft_of(text))


def test_misspellings_are_found_with_their_capitals() -> None:
    check = spelled("Teh cat, **recieve**d.\n\nADRESS and `teh`.")

    assert [(one.line, one.column, one.suggestion) for one in check.remarks] == [
        (1, 1, "The"),
        (1, 12, "received"),
        (3, 1, "ADDRESS"),
    ]
    assert check.status == "failed"


def test_accepted_words_are_right() -> None:
    check = spelled("Teh recieve", "teh", "Recieve")

    assert check.status == "passed"
    assert check.remarks == ()


def test_plain_prose_passes_with_little_certainty() -> None:
    check = spelled("We filled ten kettles and stopped the time by hand.")

    assert check.status == "passed"
    assert check.confidence == pytest.approx(0.8)


def test_the_list_is_read_with_choices_and_notes() -> None:
    known = parse_list(
        ["Teh->the", "clas->class, clash,", "fo->of, for, a name, maybe", "junk"]
    )

    assert known == {
        "teh": Correction(("the",)),
        "clas": Correction(("class", "clash")),
        "fo": Correction(("of", "for", "a name"), "maybe"),
    }


def test_an_accept_list_may_have_comments(tmp_path: Path) -> None:
    file = tmp_path / "accept.txt"
    file.write_text("Acme # our name\n\n# nothing\nteh\n", "utf-8")

    assert read_accept_list(file) == {"Acme", "teh"}


def test_a_missing_list_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling, "DISTRIBUTION", "no-such-distribution")

    with pytest.raises(Unfit, match=r"agent-run\[qa\]"):
        SpellingChecker().cache_key(draft_of("x"))
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.distribution("no-such-distribution")


def test_a_misspelling_names_what_it_should_be() -> None:
    assert spelled("Teh cat").remarks[0].message == "'Teh' is a known misspelling of 'The'"
    choice = spelled("They abbort it").remarks[0]
    assert choice.message == "'abbort' is a known misspelling of 'abort' or 'abbot'"
