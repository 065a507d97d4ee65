"""The one way to ask a language model, and what it cost.

Importing this loads no provider; that happens when a model is opened.
"""

from agent_run.models.asking import ask_for
from agent_run.models.meter import BytesMeter, open_meter
from agent_run.models.opening import open_model
from agent_run.models.options import ModelOptions, Price
from agent_run.models.paying import PaidModel, Terms, paid
from agent_run.models.purse import DayBudget, DayPurse, MemoryPurse
from agent_run.models.scripted import ScriptedModel, Turn

__all__ = [
    "BytesMeter",
    "DayBudget",
    "DayPurse",
    "MemoryPurse",
    "ModelOptions",
    "PaidModel",
    "Price",
    "ScriptedModel",
    "Terms",
    "Turn",
    "ask_for",
    "open_meter",
    "open_model",
    "paid",
]
