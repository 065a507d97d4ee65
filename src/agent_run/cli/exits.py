"""Exit codes: the one place that says which end of the story is which number."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from agent_run import errors
from agent_run.errors import AgentRunError


class Exit(IntEnum):
    """What a script can tell from the exit code alone."""

    DONE = 0
    FAILED = 1
    INVALID = 2  # bad usage, invalid input, no such run or task
    UNFIT = 3  # this machine or configuration cannot do it
    REFUSED = 4  # a gate refused the work
    NOT_YOURS = 5  # the claim was refused, or is stale
    OVER_BUDGET = 6
    FOR_A_PERSON = 7  # waits for a person
    INTERRUPTED = 130


_CODES: Final[Mapping[type[AgentRunError], Exit]] = {
    errors.AgentRunError: Exit.FAILED,
    errors.ContractError: Exit.INVALID,
    errors.OverBudget: Exit.OVER_BUDGET,
    errors.UnknownRun: Exit.INVALID,
    errors.UnknownTask: Exit.INVALID,
    errors.AlreadyPosted: Exit.INVALID,
    errors.NotClaimable: Exit.NOT_YOURS,
    errors.StaleClaim: Exit.NOT_YOURS,
    errors.StoreError: Exit.UNFIT,
    errors.SequenceTaken: Exit.FAILED,
    errors.Tampered: Exit.FAILED,
    errors.TooBusy: Exit.FAILED,
    errors.Unfit: Exit.UNFIT,
    errors.WorkspaceError: Exit.UNFIT,
    errors.ApplyRefused: Exit.FAILED,
}
"""An error without a row of its own has the code of its nearest ancestor."""


def exit_code_of(error: AgentRunError) -> Exit:
    """Return the exit code that tells of `error`."""
    known = (kind for kind in type(error).__mro__ if kind in _CODES)
    return _CODES[next(known, errors.AgentRunError)]
