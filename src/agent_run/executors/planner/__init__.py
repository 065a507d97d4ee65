"""Planner and reviewer: ordinary executors whose output is a plan, or a review."""

from agent_run.executors.planner.ground import Ground, ground_at
from agent_run.executors.planner.planner import Planned, Planner, PlannerLimits, plan_for
from agent_run.executors.planner.reviewer import Review, Reviewer, review_of

__all__ = [
    "Ground",
    "Planned",
    "Planner",
    "PlannerLimits",
    "Review",
    "Reviewer",
    "ground_at",
    "plan_for",
    "review_of",
]
