"""Phrases are found however they are written; the classifier knows its doubts."""

from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_run.errors import InvalidDocument
from agent_run.executors.content.classifier import (
    Classifier,
    Example,
    load_model,
    read_examples,
    read_model,
    starter_model,
    train,
)
from agent_run.executors.content.compliance import ComplianceChecker
from agent_run.executors.content.drafts import draft_of
from agent_run.executors.content.lexicon import read_lexicon, starter_lexicon
from agent_run.executors.content.remarks import Check
from agent_run.executors.content.sameness import words_of

WRONG_WEIGHT = (
    '{"format": "agent-run naive-bayes 1", "bias": 1, "unseen": 0, "share": 0.5,'
    ' "curve": [1, 0], "weights": {"a": NaN}}'
)
LEXICON = read_lexicon(
    """
forbidden:
  - {id: free, phrases: [risk free], unless: [not risk free], suggestion: name the risk}
required:
  - {id: notice, phrases: [capital at risk], when: [invest]}
""",
    "own",
)


def checked(text: str, model: Classifier | None = None) -> Check:
    return anyio.run(ComplianceChecker(LEXICON, model).check, draft_of(text))


@pytest.mark.parametrize(
    "text",
    [
        "It is risk free.",
        "It is RISK-FREE.",
        "It is **risk**\nfree.",
        "It is risk\u00a0free.",
        "It is r\u200bisk fr\u00adee.",
        "It is ri\u0455k fr\u0435\u0435.",
        "It is \uff52\uff49\uff53\uff4b free.",
        "It is \u201crisk\u201d \u2013 free.",
        "It is r\u00efsk free.",
    ],
)
def test_a_forbidden_phrase_is_found_however_it_is_written(text: str) -> None:
    check = checked(text)

    assert check.status == "failed"
    found = [one for one in check.remarks if one.rule != "unseen"]
    assert [(one.rule, one.line, one.column) for one in found] == [
        ("lexicon.free", 1, 9 if "**" in text else check.remarks[0].column)
    ]
    assert check.remarks[0].suggestion == "name the risk"


@pytest.mark.parametrize(
    "text", ["No risk. Free tea.", "risky freedom", "`risk free`", "risk, free"]
)
def test_words_that_do_not_belong_together_are_no_phrase(text: str) -> None:
    assert checked(text).status == "passed"


def test_an_excuse_covers_only_its_own_place() -> None:
    check = checked("It is not risk free. It is risk free.")

    assert [one.column for one in check.remarks] == [28]


def test_a_required_phrase_is_asked_for_at_its_trigger() -> None:
    assert [one.column for one in checked("You can invest now.").remarks] == [9]
    assert checked("You can invest. Your capital at risk.").status == "passed"
    assert checked("You can wait.").status == "passed"


def test_a_wrong_lexicon_names_every_fault() -> None:
    with pytest.raises(InvalidDocument) as caught:
        read_lexicon("forbidden: [{id: a}]\nrequired: [{phrases: [x]}]\nmore: 1", "own.yaml")

    for part in ("own.yaml", "forbidden[0].phrases", "required[0].id", "more"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[" * 900_000, "a: b: c", "forbidden: [{id: a, phrases: ['!']}]"]
)
def test_a_lexicon_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidDocument):
        read_lexicon(text, "own.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "own.yaml: is empty"),
        ("version: 1", "holds no phrase, expected entries under 'forbidden' or 'required'"),
        ("forbidden: []\nrequired: []", "holds no phrase"),
        (
            "required:\n  - {id: a, phrases: [x]}\n  - {id: a, phrases: [y]}",
            "entry 'a' stands twice",
        ),
        (
            "forbidden:\n  - id: a\n    phrases: ['!']",
            "own.yaml:3: forbidden[0].phrases: phrase '!' holds no word",
        ),
        (
            "forbidden:\n  - id: a\n    phrase: [x]\n    phrases: [x]",
            "is not a known key; did you mean 'phrases'?",
        ),
    ],
)
def test_a_lexicon_that_would_pass_everything_is_refused_in_plain_words(
    text: str, said: str
) -> None:
    with pytest.raises(InvalidDocument) as caught:
        read_lexicon(text, "own.yaml")

    assert said in str(caught.value)


def test_the_starter_lexicon_is_valid() -> None:
    assert len(starter_lexicon().forbidden) >= 8


def test_the_shipped_model_is_what_our_examples_give() -> None:
    file = Path(__file__).parents[3] / "examples" / "content-qa" / "phrases.jsonl"
    examples = read_examples(file.read_text("utf-8").splitlines(), file.name)

    assert train(examples).digest == starter_model().digest


def test_doubt_lowers_the_confidence_and_certainty_fails() -> None:
    model = starter_model()

    sure = checked("Hurry, only 2 left in stock!", model)
    calm = checked("The kettle is made of steel and has a scale inside.", model)

    assert sure.status == "failed"
    assert sure.confidence > 0.95
    assert calm.status == "passed"
    assert calm.confidence > 0.7


def test_a_rarer_objection_needs_more_evidence() -> None:
    model = starter_model()
    text = "Read our offer today"

    assert (
        model.probability(text, 0.01)
        < model.probability(text, 0.1)
        < model.probability(text, 0.6)
    )


def test_a_model_is_the_same_after_saving(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    starter_model().save(file)

    assert load_model(file) == starter_model()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "x"}', "[" * 100_000,
     WRONG_WEIGHT],
)  # fmt: skip
def test_a_model_file_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidDocument, match=r"'m\.json'"):
        read_model(text, "m.json")


def test_one_sided_examples_are_refused() -> None:
    with pytest.raises(InvalidDocument, match="0 of 20"):
        train(Example(str(number), label=False) for number in range(20))


def test_examples_with_a_wrong_label_are_named() -> None:
    with pytest.raises(InvalidDocument, match="own:2"):
        read_examples(['{"text": "a", "label": 1}', '{"text": "a", "label": 2}'], "own")


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=200))
def test_any_text_gets_a_probability_and_words_have_places(text: str) -> None:
    label, confidence = starter_model().predict(text)

    assert isinstance(label, bool)
    assert 0.5 <= confidence <= 1
    for word in words_of(text):
        assert 0 <= word.start < word.end <= len(text)
