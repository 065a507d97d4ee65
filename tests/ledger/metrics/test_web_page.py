"""The page of metrics: what needs attention first, sound for readers, deaf to strangers."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from agent_run.ledger.metrics.report import Metrics, measure
from agent_run.ledger.metrics.tables import budget_table, cost_table, over_table
from agent_run.ledger.metrics.web_page import web_page
from tests.support.books import Book
from tests.support.page_reading import PageReader
from tests.support.page_samples import HOSTILE, LONG, a_week, hostile, one_task
from tests.support.stories import claim, post


def nothing() -> Metrics:
    return measure([])


@pytest.mark.parametrize("made", [nothing, one_task, a_week, hostile])
def test_every_page_is_sound(made: Callable[[], Metrics]) -> None:
    read = PageReader(web_page(made(), title="Metrics of a folder"))

    assert read.faults == []


def test_an_empty_ledger_is_said_in_a_sentence() -> None:
    read = PageReader(web_page(nothing(), title="Metrics of a folder"))

    assert "0 tasks in 0 runs. Nothing was posted" in read.text
    assert read.headings == [1]


def test_what_needs_attention_stands_first() -> None:
    text = PageReader(web_page(a_week(), title="Metrics of a folder")).text

    told = text[text.index("What needs attention") : text.index("tasks accepted")]
    assert "things wait for a person, the oldest since 2026-11-15" in told
    assert "confidence fell from 0.84 to 0.56 over the last 13 records of link-check" in told
    assert "5 budgets are overdrawn" in told
    assert "requests have no known price" in told


def test_where_nothing_needs_attention_it_says_so() -> None:
    page = web_page(one_task(), title="Metrics of a folder")

    assert "Nothing: nobody is waited for" in page
    assert "1 task in 1 run." in page


def test_words_of_strangers_do_nothing_and_stay_short() -> None:
    page = web_page(hostile(), title=HOSTILE + LONG)

    assert "<script" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "(10,000 characters)" in page
    assert len(page) < 40_000


def test_only_steps_with_a_course_are_drawn() -> None:
    assert web_page(one_task(), title="t").count('role="img"') == 0
    assert web_page(a_week(), title="t").count('role="img"') == 6


def test_a_plot_says_its_scale_its_days_and_what_fell() -> None:
    text = PageReader(web_page(a_week(), title="t")).text

    plot = text[text.index("Confidence of link-check") :][:260]
    assert "39 records, median 0.82; fell from 0.84 to 0.56 over the last 13" in plot
    assert "last 13 0 0.5 1 2026-11-15 2026-11-22" in plot


def test_a_request_without_a_price_is_not_free() -> None:
    metrics = a_week()

    costs = {row[0]: row[4] for row in cost_table("model", metrics.costs.by_model).rows}
    steps = {row[0]: row[5] for row in budget_table(metrics).rows}
    assert costs["a model served here"] == "unknown"
    assert steps["link-check"] == "unknown"
    assert costs["anthropic:claude-sonnet-4-5"].startswith("$1.")


def test_large_amounts_are_written_out() -> None:
    book = Book("run").tell(post("a", budget={"max_tokens": 1_000_000}), claim(task_id="a"))
    book.submit(2, "a", observed={}, tokens_used=1_234_567, cost_usd=Decimal("0.0021"))

    assert over_table(measure([book.run()])).rows == (
        ("run", "a", "tokens", "1,234,567", "1,000,000"),
    )
