"""Purses without a ledger, and the budget of the day."""

import threading
from pathlib import Path

import pytest

from agent_run.contract.budget import Budget, Spend
from agent_run.errors import ContractError, OverBudget, TransitionError
from agent_run.models import DayBudget, DayPurse, MemoryPurse

TEN = Spend(tokens=10, requests=1)


def test_what_is_set_aside_counts_like_what_is_spent() -> None:
    purse = MemoryPurse(Budget(max_tokens=25))
    purse.reserve("a", TEN)
    purse.settle("a", TEN)
    purse.reserve("b", TEN)

    with pytest.raises(OverBudget, match="tokens 30 > 25"):
        purse.reserve("c", TEN)


def test_what_was_not_needed_can_be_spent_again() -> None:
    purse = MemoryPurse(Budget(max_tokens=10))
    purse.reserve("a", TEN)
    purse.settle("a", Spend(tokens=1, requests=1))

    purse.reserve("b", Spend(tokens=9))

    assert purse.spent.tokens == 1


def test_a_call_is_reserved_once_and_settled_once() -> None:
    purse = MemoryPurse()
    purse.reserve("a", TEN)
    with pytest.raises(TransitionError, match="already"):
        purse.reserve("a", TEN)
    purse.settle("a", TEN)
    with pytest.raises(TransitionError, match="never reserved"):
        purse.settle("a", TEN)
    with pytest.raises(TransitionError, match="already"):
        purse.reserve("a", TEN)


def test_tasks_share_the_budget_but_not_the_names() -> None:
    purse = MemoryPurse(Budget(max_tokens=25))
    purse.of("one").reserve("a", TEN)
    purse.of("two").reserve("a", TEN)

    with pytest.raises(OverBudget):
        purse.of("three").reserve("a", TEN)


def test_the_next_process_knows_what_was_finished_and_what_was_only_begun(
    tmp_path: Path,
) -> None:
    first = MemoryPurse(file=tmp_path / "purse")
    first.reserve("done", TEN)
    first.settle("done", TEN, {"said": "hello"})
    first.reserve("lost", TEN)

    second = MemoryPurse(file=tmp_path / "purse")

    done, lost = second.recall("done"), second.recall("lost")
    assert done is not None
    assert (done.finished, done.result) == (True, {"said": "hello"})
    assert lost is not None
    assert not lost.finished
    assert second.recall("never") is None
    assert second.spent.tokens == 20


def test_a_torn_last_line_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "purse"
    purse = MemoryPurse(file=file)
    purse.reserve("a", TEN)
    purse.settle("a", TEN, "kept")
    whole = file.read_text()
    file.write_text(whole + '{"reserve":"b","amo')

    again = MemoryPurse(file=file)
    again.reserve("b", TEN)

    assert MemoryPurse(file=file).recall("a") == again.recall("a")
    assert file.read_text().startswith(whole)


def test_a_file_that_is_no_purse_is_refused(tmp_path: Path) -> None:
    (tmp_path / "purse").write_text("[]\nhello\n")

    with pytest.raises(ContractError, match="line 1"):
        MemoryPurse(file=tmp_path / "purse")


def test_many_threads_never_promise_the_same_twice() -> None:
    purse = MemoryPurse(Budget(max_tokens=500))
    granted: list[int] = []

    def take(number: int) -> None:
        for step in range(20):
            try:
                purse.reserve(f"{number}.{step}", TEN)
            except OverBudget:
                return
            granted.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(granted) == 50


def test_the_day_refuses_what_all_runs_together_may_not_spend() -> None:
    today = Spend.model_validate({"cost_usd": "4.5", "tokens": 100})
    purse = DayPurse(MemoryPurse(), DayBudget(max_cost_usd=5.0), lambda: today)

    purse.reserve("a", Spend.model_validate({"cost_usd": "0.5"}))
    with pytest.raises(OverBudget, match="day"):
        purse.reserve("b", Spend.model_validate({"cost_usd": "0.51"}))
    purse.settle("a", Spend.model_validate({"cost_usd": "0.1"}), "done")

    known = purse.recall("a")
    assert known is not None
    assert known.result == "done"


def test_the_day_refuses_an_unknown_price_only_under_a_limit_in_dollars() -> None:
    unpriced = Spend(tokens=5, unpriced_requests=1)

    DayBudget(max_tokens=10).check(Spend(), unpriced)
    with pytest.raises(OverBudget, match="nobody knows the price"):
        DayBudget(max_cost_usd=5).check(Spend(), unpriced)
    with pytest.raises(OverBudget, match="tokens 15 > 10"):
        DayBudget(max_tokens=10).check(Spend(tokens=10), unpriced)
