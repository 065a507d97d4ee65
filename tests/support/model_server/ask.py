"""One request to a model, told apart from the dialect it came in.

The turn is counted in the conversation itself, not in the server: a retried or a parallel
request gets the same answer.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Dialect: TypeAlias = Literal["chat", "responses", "messages"]
Json: TypeAlias = dict[str, object]

_ATTEMPT: Final = re.compile(r"\b(?:AGENT_RUN_)?ATTEMPT\W{1,4}(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the caller offers; `form` is how it wants to be called."""

    name: str
    form: Literal["function", "custom"] = "function"
    parameters: Mapping[str, object] = field(default_factory=dict)
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """What a caller wants from the model."""

    dialect: Dialect
    model: str
    system: str
    prompt: str
    """All text of the user, first message first."""
    turn: int
    """How many answers of the model the conversation already holds."""
    tools: Mapping[str, Tool]
    results: tuple[str, ...] = ()
    """What the called tools gave back, oldest first."""
    output_schema: Mapping[str, object] | None = None
    """The JSON Schema the answer must follow. `None` means free text."""
    stream: bool = False

    @property
    def attempt(self) -> int:
        """The attempt the brief speaks of; 1 where it names none."""
        found = _ATTEMPT.search(self.prompt)
        return int(found.group(1)) if found else 1


def text_of(content: object) -> str:
    """Return the text in a message's content, whichever shape the dialect gives it."""
    match content:
        case str():
            return content
        case {"text": str(text)}:
            return text
        case {"content": inner}:
            return text_of(inner)
        case {"output": inner}:
            return text_of(inner)
        case list():
            return "\n".join(part for part in map(text_of, content) if part)
        case _:
            return ""


def as_object(value: object) -> Json:
    """Return `value` where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_objects(value: object) -> list[Json]:
    """Return the JSON objects in `value` where it is a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
