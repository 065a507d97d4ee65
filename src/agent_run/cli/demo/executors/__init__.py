"""Executors of the demo: scripts that are run in the fence, never imported by us.

Each works in its current directory and prints its record as the last JSON object.
"""
