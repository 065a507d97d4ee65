"""The nodes that come with the recipe: events, integrations, composing, and the fixed end."""

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from agent_run.contract.brief import Brief
from agent_run.contract.notes import Notes
from agent_run.contract.record import Question, Record
from agent_run.executors.function import executor
from agent_run.recipes.configure.registry import (
    Configuration,
    Registry,
    Specialist,
    Waiting,
    asks_a_person,
    specialist,
)
from agent_run.recipes.places import sentence_of, write_json

_A_DAY: Final = Waiting(within=timedelta(days=1), on_silence="escalate")


def usual_registry(folder: Path, *, waits: Waiting = _A_DAY) -> Registry:
    """Return the specialists of this recipe; configurations are saved in `folder`."""
    return Registry(
        specialists=(
            Specialist(
                specialist("event_specialist", _events),
                when=_is_event_driven,
                message=lambda notes: "The user wants it to act on events. Name them.",
            ),
            Specialist(
                asks_a_person("event_config", _ask_for_event),
                when=_is_event_driven,
                message=lambda notes: "Collect how each event is told from others.",
                waits=waits,
            ),
            Specialist(
                specialist("integration_specialist", _integrations),
                when=lambda notes: bool(notes.mentioned_integrations),
                message=lambda notes: (
                    f"The user mentioned {sentence_of(notes.mentioned_integrations)}. Select."
                ),
            ),
            Specialist(
                asks_a_person("integration_config", _ask_for_integrations),
                when=lambda notes: bool(notes.mentioned_integrations),
                message=lambda notes: "Collect the parameters of the integrations.",
                waits=waits,
            ),
            Specialist(
                specialist("composer", _compose),
                when=lambda notes: True,
                message=lambda notes: "Write the instructions that cover all of it.",
            ),
        ),
        final=fixed_region(folder),
    )


def fixed_region(folder: Path) -> tuple[Specialist, ...]:
    """Return the nodes that run whatever happened: save, then summarize."""

    @executor("save_node")
    def save(brief: Brief) -> Record:
        outcomes = _outcomes(brief)
        place = folder / f"{brief.run_id}.json"
        saved: dict[str, JsonValue] = {
            "run_id": brief.run_id,
            "complete": all(one["status"] == "accepted" for one in outcomes),
            "configuration": _configured(outcomes),
            "nodes": [{"node": one["task"], "status": one["status"]} for one in outcomes],
        }
        write_json(place, saved)
        return Record(status="done", output=saved, notes=f"saved to {place}")

    @executor("summarizer")
    def summarize(brief: Brief) -> Record:
        said = _summary(_outcomes(brief))
        return Record(status="done", output=said, notes=said)

    def always(notes: Notes) -> bool:
        return True

    return (
        Specialist(save, always, lambda notes: "Save everything that was configured."),
        Specialist(summarize, always, lambda notes: "Say what was configured, and what not."),
    )


def _is_event_driven(notes: Notes) -> bool:
    return notes.event_flags.get("event_driven", False)


def _events(notes: Notes, configuration: Configuration) -> JsonValue:
    return {"events": [one for one in notes.requirements if "when" in one.lower()]}


def _ask_for_event(notes: Notes, configuration: Configuration) -> Question:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "required": ["event"],
        "properties": {"event": {"type": "string", "minLength": 1}},
        "additionalProperties": {"type": "string"},
    }
    return Question(text="Which event should start it?", answer_schema=schema)


def _integrations(notes: Notes, configuration: Configuration) -> JsonValue:
    return {"selected": list(notes.mentioned_integrations)}


def _ask_for_integrations(notes: Notes, configuration: Configuration) -> Question:
    names = list(notes.mentioned_integrations)
    schema: dict[str, JsonValue] = {
        "type": "object",
        "required": list(names),
        "properties": {name: {"type": "object"} for name in names},
        "additionalProperties": False,
    }
    text = f"Which parameters do {sentence_of(names)} need?"
    return Question(text=text, answer_schema=schema)


def _compose(notes: Notes, configuration: Configuration) -> JsonValue:
    covers: list[JsonValue] = [*sorted(configuration)]
    return {"instructions": list(notes.requirements), "covers": covers}


def _outcomes(brief: Brief) -> list[dict[str, Any]]:
    handed: Any = brief.input
    return list(handed["outcomes"]) if isinstance(handed, dict) else []


def _configured(outcomes: list[dict[str, Any]]) -> JsonValue:
    """Return what the last node that came through had before it, and added."""
    outputs = [one["output"] for one in outcomes if isinstance(one.get("output"), dict)]
    return outputs[-1] if outputs else {}


def _summary(outcomes: list[dict[str, Any]]) -> str:
    nodes = [one for one in outcomes if one["task"].partition(".")[0] != "save_node"]
    done = [str(one["task"]) for one in nodes if one["status"] == "accepted"]
    left = [f"{one['task']} ({one['status']})" for one in nodes if one["status"] != "accepted"]
    said = f"Configured by {sentence_of(done)}." if done else "Nothing was configured."
    return f"{said} Not done: {sentence_of(left)}." if left else said
