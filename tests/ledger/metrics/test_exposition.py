"""Prometheus text, read back by a strict reader of the format: nothing is bent on the way."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from agent_run.ledger.metrics.exposition import exposition
from agent_run.ledger.metrics.report import measure
from tests.support.books import Book
from tests.support.stories import (
    FAILED,
    QUARTER,
    claim,
    judge,
    open_run,
    post,
    review,
    submit,
)

NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|(?=\}))')
SAMPLE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
ESCAPES: Final = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
SUFFIXES: Final = {"summary": ("", "_sum", "_count"), "gauge": ("",), "counter": ("",)}


class Read(NamedTuple):
    """One sample as a server reads it."""

    name: str
    labels: dict[str, str]
    value: float


def _labels(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = LABEL.match(text + "}", place)
        assert match, f"no label at {text[place:]!r}"
        name, value = match.groups()
        assert name not in found, f"{name} stands twice"
        found[name] = re.sub(r"\\.", lambda escape: ESCAPES[escape.group()], value)
        place = match.end()
    return found


def _families(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield name, type and samples of each family; help and type stand before them, once."""
    assert text.endswith("\n")
    lines = text.removesuffix("\n").split("\n")
    starts = [at for at, line in enumerate(lines) if line.startswith("# HELP ")]
    assert starts[0] == 0
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        _, _, name, _ = lines[start].split(" ", 3)
        mark, word, typed, kind = lines[start + 1].split(" ")
        assert (mark, word, typed) == ("#", "TYPE", name)
        assert NAME.fullmatch(name)
        assert lines[start + 2 : end], f"{name} has no sample"
        yield name, kind, lines[start + 2 : end]


def read_strictly(text: str) -> list[Read]:
    """Return every sample, or fail at what a server would refuse."""
    found: list[Read] = []
    names: set[str] = set()
    for family, kind, lines in _families(text):
        assert family not in names, f"{family} stands twice"
        names.add(family)
        assert family.endswith("_total") == (kind == "counter")
        for line in lines:
            match = SAMPLE.fullmatch(line)
            assert match, f"no sample: {line!r}"
            name, labels, value = match.groups()
            assert name.removeprefix(family) in SUFFIXES[kind], f"{name} is not of {family}"
            found.append(Read(name, _labels(labels or ""), float(value)))
    keys = [(one.name, *sorted(one.labels.items())) for one in found]
    assert len(keys) == len(set(keys)), "a sample stands twice"
    return found


def _story(step: str, model: str) -> Book:
    book = Book("run").tell(open_run(max_tokens=100))
    book.tell(post("b"), claim(task_id="b"), submit(3, "b"), judge(FAILED, "b"))
    book.tell(post("c"), post("a", labels={"step": step}), claim(task_id="a"))
    seen: Any = {"model": model, "fence": {"kind": model}}
    taken = {"tokens_used": 200, "requests_made": 1}  # more than the run was granted
    book.submit(book.claim_of("a"), "a", observed=seen, confidence=0.4, **taken)
    book.wait(QUARTER).tell(review(FAILED, "a"))
    return book


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_every_name_comes_back_as_it_was(step: str, model: str) -> None:
    found = read_strictly(exposition(measure([_story(step, model).run()])))

    assert step in {one.labels["step"] for one in found if "step" in one.labels}
    assert {one.labels["model"] for one in found if "model" in one.labels} == {model}


def test_each_number_is_what_the_metrics_say() -> None:
    book = _story('to"ne\\\n', "acme:m1")

    found = {(one.name, *one.labels.values()): one.value for one in read_strictly(_text(book))}

    assert found["agent_run_runs",] == 1
    assert found["agent_run_budget_over", "run"] == 1
    assert found["agent_run_tasks", "open"] == 3
    assert found["agent_run_worked_tasks", 'to"ne\\\n'] == 1
    assert found["agent_run_escalation_ratio", 'to"ne\\\n'] == 1
    assert found["agent_run_step_budget_used_ratio", "b", "attempts"] == 0.333333333
    assert found["agent_run_answer_seconds_count", "decision"] == 1
    assert found["agent_run_answer_seconds_sum", "decision"] == 900
    assert found["agent_run_model_unpriced_requests", "acme:m1"] == 1


def test_what_nobody_knows_is_left_out_and_is_no_zero() -> None:
    book = _story("tone", "acme:m1")

    found = {(one.name, *one.labels.values()) for one in read_strictly(_text(book))}

    assert ("agent_run_model_cost_usd", "acme:m1") not in found
    assert not any(name == "agent_run_confidence_regressed" for name, *_ in found)
    assert ("agent_run_first_pass_ratio", "c") not in found


def _text(book: Book) -> str:
    return exposition(measure([book.run()]))


def test_an_empty_ledger_is_valid_too() -> None:
    found = read_strictly(exposition(measure([])))

    assert Read("agent_run_runs", {}, 0) in found
    assert not any(one.name.endswith("_ratio") for one in found)
