"""Experiments that are run on agent-run and on its peers, side by side."""

from benchmarks.peers.side_by_side import main

__all__ = ["main"]
