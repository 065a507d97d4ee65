"""The envelope: what one task hands to the next, with what is needed to trust it.

It is stamped at the moment it is posted: checked against the receiver's schema, measured in
tokens by a named counter, and never cut.
"""

from typing import Final, Generic

from pydantic import Field, JsonValue
from typing_extensions import TypeVar

from agent_run.contract.base import (
    Contract,
    Line,
    RunId,
    Share,
    Whole,
)

PayloadT = TypeVar("PayloadT", default=JsonValue)

UNCOUNTED: Final = "uncounted"


class Envelope(Contract, Generic[PayloadT]):
    """A typed handoff from `source` to `target`."""

    source: str = Field(min_length=1, max_length=200)
    target: str = Field(min_length=1, max_length=200)
    payload: PayloadT
    intent: str = Field(default="", max_length=4_000)
    """What the person who started it all asked for, unchanged since then."""
    trace_id: str = Field(min_length=1, max_length=200)
    confidence: Share | None = None
    warnings: tuple[Line, ...] = ()
    tokens: Whole | None = Field(default=None, ge=0)
    """How large the payload is. `None` means not measured yet."""
    counter: str = UNCOUNTED
    """Who measured `tokens`; counters of different models do not agree."""
    schema_id: str = ""
    fingerprint: str = ""
    """Hash of the schema the payload was checked against when it was posted."""
    run_id: RunId | None = None
