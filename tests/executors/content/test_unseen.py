"""Characters that nobody sees are remarked on; writings that need them are left alone."""

import time

import anyio
import pytest

from agent_run.executors.content.compliance import ComplianceChecker
from agent_run.executors.content.drafts import draft_of
from agent_run.executors.content.lexicon import starter_lexicon
from agent_run.executors.content.rulebook import starter_rules
from agent_run.executors.content.spelling import SpellingChecker
from agent_run.executors.content.tone import ToneChecker
from agent_run.executors.content.unseen import unseen


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "pay \u202e001\u202c now",
            "U+202E right-to-left override makes words read in another",
        ),
        ("re\u200bcieved", "U+200B zero width space is seen by nobody"),
        ("a\u200db", "U+200D zero width joiner"),
        ("a\u2066b\u2069", "U+2066 left-to-right isolate"),
        ("a\u200eb", "U+200E left-to-right mark"),
        ("a\u2060b", "U+2060 word joiner"),
        ("a\ufeffb", "U+FEFF zero width no-break space"),
        ("a\u3164b", "U+3164 hangul filler"),
        ("a\x07b", "U+0007 control character"),
        ("a\U000e0061b", "U+E0061 tag latin small letter a"),
        ("a\U000e0101b", "U+E0101 variation selector-18"),
        ("a\ufe0fb", "U+FE0F variation selector-16"),
        ("a&#8203;b", "U+200B"),
        ("a&#x202E;b", "U+202E"),
        ("a&zwnj;b", "U+200C"),
    ],
)
def test_what_nobody_sees_is_a_remark_with_its_place(text: str, said: str) -> None:
    remarks = unseen(draft_of(f"First.\n\n{text}\n"))

    assert said in remarks[0].message
    assert remarks[0].line == 3
    assert remarks[0].severity == "warning"
    assert remarks[0].quote.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "plain words,\ttabs\r\nand lines",
        "a family \U0001f468\u200d\U0001f469\u200d\U0001f467 and a heart \u2764\ufe0f",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0915\u094d\u200d\u0937",
        "\u200f\u05e9\u05dc\u05d5\u05dd\u200f (c)",
        "1\ufe0f\u20e3",
        "\u845b\U000e0100",
        "&amp; &nbsp; &copy;",
    ],
)
def test_writings_that_need_such_characters_are_left_alone(text: str) -> None:
    assert unseen(draft_of(text)) == ()


def test_plain_text_has_no_entities() -> None:
    assert unseen(draft_of("a&#8203;b", "a.txt")) == ()


def test_a_soft_hyphen_is_only_a_suggestion() -> None:
    assert [one.severity for one in unseen(draft_of("Hyphen\u00adation"))] == ["suggestion"]


def test_a_draft_full_of_them_has_one_remark_for_each_kind() -> None:
    started = time.process_time()
    remarks = unseen(draft_of("a\u200bb\u202e" * 100_000))

    assert time.process_time() - started < 10
    assert [one.message.partition(",")[2] for one in remarks] == [
        " here and in 99999 other places"
    ] * 2


def test_every_check_of_words_says_so_and_spelling_is_not_sure() -> None:
    draft = draft_of("We re\u200bceived it.")

    async def looked() -> list[tuple[str, float, list[str]]]:
        checkers = (
            ToneChecker(starter_rules()),
            ComplianceChecker(starter_lexicon()),
            SpellingChecker(),
        )
        checks = [await checker.check(draft) for checker in checkers]
        return [(one.status, one.confidence, [r.rule for r in one.remarks]) for one in checks]

    assert anyio.run(looked) == [
        ("passed", 0.89, ["unseen"]),
        ("passed", 0.9, ["unseen"]),
        ("passed", 0.6, ["unseen"]),
    ]
