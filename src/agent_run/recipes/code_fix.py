"""Code fixes: commands that fail today, made to succeed, one after the other.

A fix may touch what it is given and nothing else; the tests that show the fault may not be
changed; every command that was mended before must still succeed; and a fix with risks is
shown to a person before it counts.
"""

from collections.abc import Sequence
from typing import Final

from agent_run.contract.budget import Budget
from agent_run.contract.manifest import Check, Manifest
from agent_run.contract.plan import Plan

NAME: Final = "code-fix"
SAYS: Final = "Mend what makes a command fail: COMMAND PATH..."
PROTECTED: Final = ("tests/**", "**/test_*.py", "**/conftest.py", "**/*_test.*")
"""What shows the fault may not be bent to hide it."""
BUDGET: Final = Budget(max_attempts=3, time_budget_sec=1_200)


def code_fix(
    failing: Sequence[str], allowed: Sequence[str], *, executor: str | None = None
) -> Plan:
    """Return the plan that mends each of the `failing` commands within `allowed` paths."""
    steps = tuple(
        _fix(number, failing[: number + 1], allowed, executor) for number in range(len(failing))
    )
    return Plan(
        objective=f"Make {' and '.join(failing)} succeed", order="sequence", steps=steps
    )


def _fix(
    number: int, commands: Sequence[str], allowed: Sequence[str], executor: str | None
) -> Manifest:
    return Manifest(
        task_id=f"fix-{number + 1}",
        objective=f"Find out why `{commands[-1]}` fails, and mend the cause",
        allowed_paths=tuple(allowed),
        protected_paths=tuple(one for one in PROTECTED if one not in allowed),
        constraints=(
            "Mend the cause, not the symptom",
            "Change no more than the fault asks for",
            "Name in the record what else may be affected",
        ),
        verification=tuple(Check(run=command) for command in commands),
        executor=executor,
        budget=BUDGET,
        review="human-if-risky",
    )
