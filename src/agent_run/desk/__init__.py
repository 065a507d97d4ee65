"""The desk: the one counter where work is posted, claimed, returned and judged."""

from agent_run.desk.counter import Desk

__all__ = ["Desk"]
