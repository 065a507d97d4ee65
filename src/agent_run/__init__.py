"""Contracts that hold between the agents that plan and the agents that do."""
