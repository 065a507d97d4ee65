"""Text from strangers is harmless to look at, and intact in JSON."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_run.cli.visible import visible
from tests.support.command_line import Ask

HOSTILE = "red \x1b[31m bell \x07 back \x1b[2K up \x1b[1A bidi \u202e\u2066 c1 \x9b31m"
"""Escapes, a bell, overrides of direction: what a ledger may hold and no terminal may get."""


@given(st.text(st.characters(codec=None)))
def test_nothing_that_cannot_be_seen_comes_through(text: str) -> None:
    shown = visible(text)

    assert shown.isprintable()
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    shown.encode()


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == "".join(c if c.isprintable() else visible(c) for c in text)
    if text.isprintable():
        assert visible(text) == text


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\n", "\\n"),
        ("\x1b", "\\x1b"),
        ("\x9b", "\\x9b"),
        ("\u202e", "\\u202e"),
        ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("é", "é"),
        ("漢", "漢"),
        (" ", " "),
    ],
)
def test_each_is_written_as_its_escape(char: str, shown: str) -> None:
    assert visible(char) == shown


def _has_control(text: str) -> bool:
    return any(not char.isprintable() and char != "\n" for char in text)


def _put_on_the_ledger(ask: Ask) -> None:
    # A record from a stranger holds no control characters, the reader saw to that; the
    # command line of a stranger's script may.
    ask("post", "repo-142.yaml")
    ask("claim", "repo-142", "--owner", HOSTILE)
    ask("release", "repo-142", "--claim", "2", "--reason", f"{HOSTILE}\nagent-run: all is well")
    ask("claim", "repo-142", "--owner", HOSTILE)


def test_hostile_text_is_escaped_for_people_and_intact_for_programs(
    ask: Ask, start: Ask
) -> None:
    _put_on_the_ledger(ask)
    assert not _has_control(start("status").out)

    for arguments in (("status",), ("show", "repo-142"), ("ledger",), ("claim", "repo-142")):
        answer = ask(*arguments)
        assert not _has_control(answer.out + answer.err), arguments
    told = ask("status", "--json")
    assert json.loads(told.out)["tasks"][0]["owner"] == HOSTILE
    assert not _has_control(told.out)
    pages = [json.loads(line) for line in ask("ledger", "--jsonl").out.splitlines()]
    assert pages[2]["event"]["reason"] == f"{HOSTILE}\nagent-run: all is well"
    assert len(ask("ledger").out.splitlines()) == 4


def test_hostile_names_and_documents_are_escaped_in_errors(ask: Ask, folder: Path) -> None:
    (folder / "evil\x1b[31m.yaml").write_text('task_id: "a\\e[31m"\n"k\\u202e": 1\n')

    for arguments in (
        ("check", "evil\x1b[31m.yaml"),
        ("check", "no\x1b[2K.yaml"),
        ("show", "\x1b[31mtask"),
        ("status", "\x1b[31m"),
        ("\x1b[31m",),
        ("status", "--\x1b[31m"),
        ("claim", "repo-142", "--ttl", "\x1b[31m"),
        ("status", "--store", "sqlite:///\x1b[31m/\u202e.db"),
    ):
        answer = ask(*arguments)
        assert not _has_control(answer.out + answer.err), arguments
        assert answer.code in {0, 2}


def test_text_that_the_terminal_cannot_encode_stops_nothing(
    ask: Ask, start: Ask, folder: Path
) -> None:
    (folder / "a.yaml").write_text("task_id: a\nobjective: Größe 漢字\n")
    ask("post", "a.yaml")

    answer = start("show", "a", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})

    assert answer.code == 0
    assert "Gr\\xf6\\xdfe" in answer.out


def test_bytes_that_are_no_text_are_refused(ask: Ask) -> None:
    ask("post", "repo-142.yaml")

    answer = ask("claim", "repo-142", "--owner", "a\udcff")

    assert answer.code == 2
    assert "UTF-8" in answer.err
