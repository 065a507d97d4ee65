"""What pages are made from in tests: a week of work, nothing, one task, and hostile words."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from agent_run.contract.record import Question
from agent_run.contract.verdict import Verdict
from agent_run.ledger.commands import Ask
from agent_run.ledger.metrics.facts import Run
from agent_run.ledger.metrics.report import Metrics, measure
from agent_run.ledger.state import Status
from tests.support.books import Book
from tests.support.stories import (
    FAILED,
    PASSED,
    UNSURE,
    answer,
    claim,
    finding,
    judge,
    open_run,
    post,
    review,
    submit,
)

RIGHT_TO_LEFT: Final = "\u202e"
HOSTILE: Final = (
    "</title></style><script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)>"
    f"\"'`{RIGHT_TO_LEFT}gnirts\u2066\u200b\x1b[31m\x00 👩‍👩‍👧‍👦 é الخط العربي ﷽ "
    "Z̴̡̢̛͓̞̗͑͗̈́a̷lgo"
)
LONG: Final = "pneumono" * 1_250
"""One word of 10,000 characters."""

_STEPS: Final = (
    "tone-check",
    "compliance-check",
    "link-check",
    "spelling-check",
    "summarize-for-newsletter",
    "translate-to-german",
)
_MODELS: Final = (
    "anthropic:claude-sonnet-4-5",
    "openai:gpt-5-mini",
    "a model served here",
)
_OVER_TIME: Final = Verdict(findings=(finding("inconclusive", "timeout"),))
_OUT_OF_SCOPE: Final = Verdict(findings=(finding("fail", "out_of_scope", "scope"),))
_APPROVED: Final = Verdict(findings=(finding("pass", "verified", "review"),))
_REJECTED: Final = Verdict(findings=(finding("fail", "review_rejected", "review"),))


def a_week(runs: int = 40) -> Metrics:
    """Return the metrics of many runs over days, in which everything happens sometimes."""
    return measure([_day(number) for number in range(runs)])


def one_task() -> Metrics:
    """Return the metrics of a single task that was accepted."""
    book = Book("monday").tell(post("kettle"), claim(task_id="kettle"))
    book.submit(2, "kettle", observed={}, status="passed", confidence=0.9)
    return measure([book.tell(judge(PASSED, "kettle")).run()])


def hostile() -> Metrics:
    """Return metrics in which every name was chosen by an enemy."""
    return measure([_hostile(f"run{number}", word) for number, word in enumerate(_words())])


def _words() -> Iterator[str]:
    yield from (HOSTILE, LONG, "😀" * 500, "javascript:alert(1)", "a\nb\tc", "")


def _hostile(run_id: str, word: str) -> Run:
    book = Book(run_id)
    labels = {"step": word} if word else {}
    book.tell(post("a", labels=labels, budget={"max_tokens": 10}), claim(task_id="a"))
    book.submit(
        book.claim_of("a"),
        "a",
        observed={"model": word, "fence": {"kind": word}},
        confidence=0.5,
        tokens_used=20,
        requests_made=1,
        cost_usd=Decimal("0.5"),
    )
    refused = Verdict(findings=(finding("fail", "low_confidence", word[:100] or "x"),))
    book.tell(post("b", labels=labels), claim(task_id="b"))
    book.tell(submit(book.claim_of("b"), "b", confidence=0.2), judge(refused, "b"))
    return book.run()


def _day(number: int) -> Run:
    book = Book(f"newsletter-{number:03d}").wait(number * timedelta(hours=4))
    book.tell(open_run(max_tokens=9_000 if number % 9 else 2_000))
    for place, step in enumerate(_STEPS):
        _task(book, number, place, step)
    return book.run()


def _task(book: Book, number: int, place: int, step: str) -> None:
    chance = (number * 7 + place * 11) % 20
    sure = 0.72 + ((number * 13 + place * 5) % 25) / 100
    if step == "link-check" and number > 27:
        sure -= 0.3
    name = f"{step}-{number}"
    book.tell(post(name, labels={"step": step}, min_confidence=0.7, budget={"max_attempts": 3}))
    if chance == 19:
        return
    book.wait(timedelta(minutes=2)).tell(claim(task_id=name))
    if book.state.tasks[name].status is not Status.CLAIMED:
        return  # nothing is left in the budget of the run
    book.wait(timedelta(seconds=20 + chance * 9))
    model = _MODELS[place % 3]
    seen: dict[str, Any] = {"model": model, "fence": {"kind": "landlock+seccomp"}}
    spent: dict[str, Any] = {"tokens_used": 380 + chance * 70, "requests_made": 1 + chance % 3}
    if place % 3 != 2:
        spent["cost_usd"] = Decimal("0.0021") * (1 + chance)
    if chance == 7:
        question = Question(text="Which tone guide?")
        book.tell(Ask(task_id=name, actor="ada", claim=book.claim_of(name), question=question))
        if number % 3:
            book.wait(timedelta(minutes=5 + number)).tell(answer("the new one", name))
        return
    book.submit(
        book.claim_of(name), name, observed=seen, status="passed", confidence=sure, **spent
    )
    _judged(book, name, chance, sure, number)


def _judged(book: Book, name: str, chance: int, sure: float, number: int) -> None:
    if book.state.tasks[name].status is not Status.SUBMITTED:
        return  # over the budget of the run, so it waits for a person
    if sure < 0.7:
        book.tell(judge(UNSURE, name))
        if number % 5:
            book.wait(timedelta(minutes=3 * number))
            book.tell(review(_APPROVED if number % 4 else _REJECTED, name))
    elif chance in {3, 4}:
        verdict = FAILED if chance == 3 else _OUT_OF_SCOPE
        book.tell(judge(verdict, name), claim(task_id=name))
        book.wait(timedelta(seconds=50))
        book.tell(submit(book.claim_of(name), name, confidence=sure))
        book.tell(judge(PASSED, name))
    elif chance == 5:
        book.tell(judge(_OVER_TIME, name), judge(PASSED, name))
    else:
        book.tell(judge(PASSED, name))
