"""The built-in agent: think, act, observe, inside one executor.

It asks a model through our port, works with few tools in the fenced workspace, and ends with
a record. Every question and every tool call is written down, so that a killed run goes on
where it stopped.
"""

from agent_run.executors.agent.executor import Agent
from agent_run.executors.agent.loop import AgentLimits

__all__ = ["Agent", "AgentLimits"]
