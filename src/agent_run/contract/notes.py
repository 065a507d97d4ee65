"""Notes: what a silent listener wrote down while others talked.

A planner reads only the notes, so everything it may not miss has a field of its own.
"""

from pydantic import Field

from agent_run.contract.base import (
    Contract,
    Flag,
    Lines,
    Text,
    Whole,
)


class Notes(Contract):
    """The structured state of a conversation, replaced as a whole at every turn."""

    requirements: Lines = ()
    mentioned_integrations: Lines = ()
    mentioned_tools: Lines = ()
    event_flags: dict[str, Flag] = Field(default_factory=dict)
    """Named signals that the plan must react to, such as `event_driven`."""
    open_questions: Lines = ()
    summary: Text = ""
    clarity_percent: Whole = Field(default=0, ge=0, le=100)
    """How ready the listener thinks we are; an integer, because models keep those in bounds."""
    turn: Whole = Field(default=0, ge=0)
    """The turn of the conversation these notes were made after."""
