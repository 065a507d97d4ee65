"""The keys of a rule file, for editors and for whoever writes one.

Rule files are read by `rulebook`, which also names those it cannot apply; a file may hold
further keys of Vale's, which mean nothing here.
"""

from pydantic import BaseModel, ConfigDict, Field

from agent_run.executors.content.remarks import Severity
from agent_run.executors.content.rulebook import Extends


class Action(BaseModel):
    """The fix that an editor would offer."""

    name: str
    params: list[str] = Field(default_factory=list)


class RuleFile(BaseModel):
    """One brand rule in Vale's format, a file of its own; a folder of files is a style."""

    model_config = ConfigDict(extra="allow")

    extends: Extends
    message: str = ""
    """What is said about a place; `%s` stands for what was found there."""
    level: Severity = "warning"
    scope: str | list[str] = "text"
    link: str = ""
    ignorecase: bool = False
    nonword: bool = False
    append: bool = False
    tokens: str | list[str] = Field(default_factory=list)
    raw: str | list[str] = Field(default_factory=list)
    exceptions: str | list[str] = Field(default_factory=list)
    swap: dict[str, str] = Field(default_factory=dict)
    capitalize: bool = False
    alpha: bool = False
    token: str = ""
    max: int | None = None
    min: int | None = None
    match: str = ""
    style: str = "AP"
    threshold: float = 0.8
    action: Action | None = None
