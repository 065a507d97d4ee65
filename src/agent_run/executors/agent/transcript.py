"""What was said and done, a line of JSON each, for people who look at a run afterwards."""

import json
from dataclasses import dataclass, field

from pydantic import JsonValue

from agent_run.ports.model import ModelAnswer


@dataclass(slots=True)
class Transcript:
    """Grows by a line for each thing that happens."""

    lines: list[str] = field(default_factory=list)

    def add(self, kind: str, **fields: JsonValue) -> None:
        """Write down one thing."""
        self.lines.append(json.dumps({"kind": kind, **fields}, ensure_ascii=False))

    def answered(self, step: int, answer: ModelAnswer) -> None:
        """Write down what the model said."""
        self.add(
            "model",
            step=step,
            model=answer.model,
            text=answer.text,
            calls=[
                call.model_dump(mode="json", exclude_defaults=True) for call in answer.calls
            ],
            tokens_in=answer.usage.tokens_in,
            tokens_out=answer.usage.tokens_out,
            counter=answer.usage.counter,
            cost_usd=None if answer.cost_usd is None else str(answer.cost_usd),
            replayed=answer.replayed,
            warnings=list(answer.warnings),
        )

    def as_bytes(self) -> bytes:
        """Return all lines as a file holds them."""
        return "\n".join(self.lines).encode(errors="replace")
