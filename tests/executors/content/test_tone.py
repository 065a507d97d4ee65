"""Brand rules in Vale's format find what they say, and never take the checker down."""

import time
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_run.errors import InvalidDocument
from agent_run.executors.content.drafts import draft_of
from agent_run.executors.content.patterns import compiled
from agent_run.executors.content.remarks import Check
from agent_run.executors.content.rulebook import (
    Rulebook,
    load_style,
    read_rule,
    starter_rules,
)
from agent_run.executors.content.tone import ToneChecker


def toned(text: str, *rules: str, name: str = "a.md", seconds: float = 2.0) -> Check:
    book = Rulebook(())
    for index, rule in enumerate(rules):
        book += read_rule(rule, f"Own.Rule{index}")
    return anyio.run(ToneChecker(book, rule_seconds=seconds).check, draft_of(text, name))


def found(check: Check) -> list[tuple[int, int, str]]:
    return [(one.line, one.column, one.quote) for one in check.remarks]


def test_existence_matches_whole_words_across_lines_and_markup() -> None:
    rule = "extends: existence\nmessage: \"No '%s'\"\nignorecase: true\ntokens: [very unique]"

    check = toned("A **Very\nunique** thing, not every uniqueness.", rule)

    assert found(check) == [(1, 5, "Very unique")]
    assert check.remarks[0].message == "No 'Very unique'"


def test_raw_stands_before_tokens_and_nonword_drops_the_bounds() -> None:
    raw = "extends: existence\nmessage: m\nnonword: true\nraw: ['a']\ntokens: ['b', 'c']"

    assert [one[2] for one in found(toned("xab ac bc", raw))] == ["ab", "ac"]


def test_substitution_names_both_words_and_offers_the_better() -> None:
    rule = (
        "extends: substitution\nmessage: \"'%s' not '%s'\"\nignorecase: true\n"
        "capitalize: true\nswap:\n  utili[sz]e: use\n  on: upon|over\n  (?:big|large)r: more\n"
    )

    check = toned("Utilise on and larger.", rule)

    assert [one.suggestion for one in check.remarks] == ["Use", "upon | over", "more"]
    assert check.remarks[0].message == "'Use' not 'Utilise'"


def test_occurrence_counts_in_its_scope() -> None:
    rule = "extends: occurrence\nmessage: '%s words'\nscope: sentence\nmax: 3\ntoken: '\\w+'"

    check = toned("One two three. One two three four. Five.", rule)

    assert [(one.column, one.message) for one in check.remarks] == [(30, "4 words")]


def test_repetition_looks_at_neighbours_only() -> None:
    rule = "extends: repetition\nmessage: '%s'\nalpha: true\ntokens: ['[^\\s]+']"

    assert [one[2] for one in found(toned("the the cat, the cat 1 1", rule))] == ["the the"]


@pytest.mark.parametrize(
    ("case", "good", "bad"),
    [
        ("$sentence", "How the API works", "How The Thing Works Today"),
        ("$title", "The Old Man and the Sea", "The old man and the sea"),
        ("$lower", "all small", "Not all"),
        ("$upper", "ALL BIG", "Not ALL"),
        ("'^[A-Z].*[a-z]$'", "Fine", "not fine"),
    ],
)
def test_capitalization_judges_headings(case: str, good: str, bad: str) -> None:
    rule = f"extends: capitalization\nmessage: '%s'\nscope: heading\nmatch: {case}"

    check = toned(f"# {good}\n\n## {bad}\n\ntext here", rule)

    assert found(check) == [(3, 4, bad)]


@pytest.mark.parametrize(
    ("scope", "quotes"),
    [
        ("text", [1, 3, 5, 7]),
        ("heading", [1]),
        ("heading.h2", []),
        ("paragraph", [3]),
        ("list", [5]),
        ("blockquote", [7]),
        ("~heading", [3, 5, 7]),
        ("text & ~list", [1, 3, 7]),
        ("[heading, list]", [1, 5]),
        ("raw", [1, 3, 5, 7, 9]),
    ],
)
def test_scopes_select_what_they_name(scope: str, quotes: list[int]) -> None:
    rule = f"extends: existence\nmessage: m\nscope: {scope}\ntokens: [word]"

    check = toned("# word\n\nword\n\n- word\n\n> word\n\n`word`\n", rule)

    assert [one.line for one in check.remarks] == quotes


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("extends: spelling\nmessage: m", "extends 'spelling'"),
        ("message: m", "extends None"),
        ("extends: existence\nlevel: fatal", "level 'fatal'"),
        ("extends: existence\nscope: comment\ntokens: [a]", "scope 'comment'"),
        ("extends: existence\ntokens: ['(']", "does not compile"),
        ("extends: existence\ntokens: ['(?:(?:a?){999}){999}']", "more than"),
        ("extends: existence", "nothing to look for"),
        ("extends: existence\ntokens: {a: b}", "tokens is not a list"),
        ("extends: [x", "not YAML"),
        ("- a", "not a mapping"),
        ("[" * 900_000, "brackets"),
        ("extends: occurrence\ntoken: a", "needs max or min"),
        ("extends: occurrence\ntoken: a\nmax: many", "many"),
    ],
)
def test_a_rule_that_cannot_be_applied_is_named_and_lowers_the_confidence(
    rule: str, reason: str
) -> None:
    check = toned("text", rule, "extends: existence\nmessage: m\ntokens: [b]")

    assert check.status == "passed"
    assert "Own.Rule0" in check.notes
    assert reason in check.notes
    assert check.confidence < 0.5


def test_a_slow_pattern_is_stopped_and_blocks_the_check() -> None:
    rule = "extends: existence\nmessage: m\nnonword: true\ntokens: ['(?:x+x+)+y']"

    started = time.monotonic()
    check = toned("x" * 100_000, rule, seconds=0.3)

    assert time.monotonic() - started < 10
    assert check.status == "blocked"
    assert "Own.Rule0 did not end in its time" in check.notes


def test_a_style_folder_is_loaded_with_its_names(tmp_path: Path) -> None:
    style = tmp_path / "Acme"
    style.mkdir()
    (style / "Good.yml").write_text("extends: existence\nmessage: m\ntokens: [a]", "utf-8")
    (style / "Script.yml").write_text("extends: script\nmessage: m", "utf-8")
    (style / "Bad.yml").write_bytes(b"\xff\xfe\x00")

    book = load_style(tmp_path)

    assert [rule.name for rule in book.rules] == ["Acme.Good"]
    assert [one.name for one in book.refused] == ["Acme.Bad", "Acme.Script"]


def test_a_folder_without_rules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="holds no rule"):
        load_style(tmp_path)


def test_every_starter_rule_is_applied_and_plain_prose_passes() -> None:
    book = starter_rules()

    check = anyio.run(
        ToneChecker(book).check,
        draft_of("# How we measured\n\nWe filled ten kettles and stopped the time by hand.\n"),
    )

    assert len(book.rules) >= 20
    assert book.refused == ()
    assert check.status == "passed"
    assert check.remarks == ()


def test_the_key_follows_the_draft_and_the_rules() -> None:
    book = starter_rules()
    draft = draft_of("text")

    keys = {
        ToneChecker(book).cache_key(draft),
        ToneChecker(book).cache_key(draft_of("other")),
        ToneChecker(Rulebook(book.rules[1:])).cache_key(draft),
    }

    assert len(keys) == 3
    assert ToneChecker(starter_rules()).cache_key(draft_of("text")) in keys


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(alphabet="abA !.\n#*`[]()<>-\u00e9", max_size=200),
    token=st.text(alphabet="ab\\()[]{}|?*+.^$w,1", min_size=1, max_size=12),
    extends=st.sampled_from(["existence", "occurrence", "repetition", "capitalization"]),
    scope=st.sampled_from(["text", "sentence", "heading", "raw", "paragraph"]),
)
def test_no_rule_and_no_text_raise_and_every_place_is_inside(
    text: str, token: str, extends: str, scope: str
) -> None:
    quoted = "'" + token.replace("'", "''") + "'"
    rule = (
        f"extends: {extends}\nmessage: '%s'\nscope: {scope}\nmax: 1\nmin: 1\ntoken: {quoted}\n"
        f"match: {quoted}\ntokens: [{quoted}]\nnonword: true\n"
    )

    check = toned(text, rule)

    lines = text.split("\n")
    for one in check.remarks:
        assert 1 <= one.line <= len(lines)
        assert 1 <= one.column <= len(lines[one.line - 1]) + 1


def test_flags_in_the_middle_of_a_pattern_are_read() -> None:
    assert compiled("a(?i)b").search("aB")
    assert not compiled("a(?i)b").search("AB")


def test_rules_that_are_not_applied_make_only_a_pass_doubtful() -> None:
    rule = "extends: existence\nmessage: m\nlevel: error\ntokens: [bad]"
    script = "extends: script\nmessage: m"

    failed = toned("A bad word.", rule, script)
    passed = toned("A good word.", rule, script)

    assert (failed.status, failed.confidence) == ("failed", 0.95)
    assert passed.confidence == pytest.approx(0.475)
    assert failed.notes.startswith("1 rule: 1 error; not applied: ")
