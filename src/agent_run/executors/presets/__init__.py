"""Presets for coding-agent command lines."""

from agent_run.executors.presets.catalogue import PRESETS
from agent_run.executors.presets.program import find_program
from agent_run.executors.presets.record import RECORD_SCHEMA
from agent_run.executors.presets.shapes import (
    Assignment,
    CommandRun,
    Endpoint,
    Invocation,
    Observation,
    Output,
    Preset,
    Program,
)

__all__ = [
    "PRESETS",
    "RECORD_SCHEMA",
    "Assignment",
    "CommandRun",
    "Endpoint",
    "Invocation",
    "Observation",
    "Output",
    "Preset",
    "Program",
    "find_program",
]
