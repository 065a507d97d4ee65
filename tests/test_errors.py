"""What many did wrong at once is told as their own errors; a fault in code stays one."""

import pytest

from agent_run.errors import AgentRunError, ContractError, OverBudget, all_of


def test_errors_come_out_of_groups_within_groups() -> None:
    inner = ExceptionGroup("inner", [OverBudget("b"), ContractError("c")])

    found = all_of(ExceptionGroup("outer", [ContractError("a"), inner]), AgentRunError)

    assert [str(error) for error in found] == ["a", "b", "c"]


def test_a_group_with_a_fault_in_it_is_raised() -> None:
    several = ExceptionGroup("outer", [ContractError("a"), ExceptionGroup("in", [KeyError(1)])])

    with pytest.raises(ExceptionGroup):
        all_of(several, AgentRunError)
