"""The plan as a model writes it: small, flat, whole numbers, every field asked for."""

from typing import Annotated, Any, Final

from pydantic import Field, JsonValue, StringConstraints

from agent_run.contract.base import Contract, Whole

Short = Annotated[str, StringConstraints(max_length=500)]
Shorts = Annotated[tuple[Short, ...], Field(max_length=20)]


class StepDraft(Contract):
    """One task for one executor."""

    task_id: Short
    objective: Annotated[str, StringConstraints(max_length=2_000)]
    allowed_paths: Shorts
    new_files: Shorts
    constraints: Shorts
    verification: Shorts
    handoff_notes: Shorts
    needs: Shorts
    confidence_percent: Whole
    unsure_of: Shorts


class PlanDraft(Contract):
    """All tasks, and what the planner does not know."""

    reasoning: Annotated[str, StringConstraints(max_length=4_000)]
    steps: Annotated[tuple[StepDraft, ...], Field(max_length=200)]
    confidence_percent: Whole
    open_questions: Shorts


_SAYS: Final = {
    "allowed_paths": "Existing files, or globs that match some, that the task may change.",
    "new_files": "Files that do not exist yet and that the task may create.",
    "verification": "Commands that fail before the work and succeed after it.",
    "needs": "task_id of steps that must be accepted first.",
    "confidence_percent": "A whole number from 0 to 100.",
    "unsure_of": "What you guessed. Empty only where you guessed nothing.",
    "handoff_notes": "What the executor should know: reasons and dangers, never code.",
}


def draft_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema that a model is given."""
    schema: dict[str, Any] = PlanDraft.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        for name, field in part["properties"].items():
            field.pop("title", None)
            if name in _SAYS:
                field["description"] = _SAYS[name]
    return schema
