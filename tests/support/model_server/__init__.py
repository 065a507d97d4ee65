"""A language model made of a script, served on loopback in three dialects."""

from tests.support.model_server.ask import Ask, Dialect, Tool
from tests.support.model_server.scenario import (
    ByAttempt,
    Edit,
    Finish,
    Refuse,
    Scenario,
    Shell,
    Turns,
    Write,
)
from tests.support.model_server.server import ModelServer, Received

__all__ = [
    "Ask",
    "ByAttempt",
    "Dialect",
    "Edit",
    "Finish",
    "ModelServer",
    "Received",
    "Refuse",
    "Scenario",
    "Shell",
    "Tool",
    "Turns",
    "Write",
]
