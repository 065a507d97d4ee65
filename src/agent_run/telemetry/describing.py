"""What a strip of the ledger is called in a trace, and what is said about it.

Names and numbers are always said; what people and agents wrote only when it is asked for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pydantic import JsonValue

from agent_run.ledger.strips import Kind, Strip
from agent_run.telemetry import names

Attribute: TypeAlias = str | int | float | bool
_ERRORS: Final = frozenset({"failed", "blocked", "expired", "unknown", "unusable", "fail"})
_PLANNERS: Final = ("planner", "re-plan")


@dataclass(frozen=True, slots=True)
class Described:
    """A span's name and attributes."""

    name: str
    attributes: Mapping[str, Attribute]
    failed: bool = False
    leaves: bool = False
    """Whether somebody outside was asked."""


def described(strip: Strip, run_id: str, *, content: bool) -> Described:
    """Return what is said about `strip`, with what was written only if `content`."""
    name, said = _KINDS[strip.kind](strip)
    said[names.CONVERSATION] = run_id
    said[names.OUTCOME] = strip.outcome
    if strip.task_id:
        said[names.TASK] = strip.task_id
    failed = strip.outcome in _ERRORS
    if failed:
        said[names.ERROR] = str(strip.details.get("reason") or strip.outcome)
    if content:
        said |= {f"agent_run.content.{key}": str(text) for key, text in strip.content.items()}
    attributes = {key: value for key, value in said.items() if value is not None}
    leaves = attributes.get(names.OPERATION) == names.CHAT
    return Described(name, attributes, failed, leaves)


def provider_of(model: str) -> str | None:
    """Return who serves a model such as `anthropic:claude-haiku-5-5`; None if it is not said.

    Two ways to speak to the same provider are one provider.
    """
    provider, colon, _ = model.partition(":")
    return provider.removesuffix("-chat") if colon and provider else None


def model_name(model: str) -> str:
    """Return a model's name as its provider knows it, without provider and address."""
    _, colon, name = model.partition(":")
    plain, at, address = name.rpartition("@")
    served_elsewhere = at and address.startswith(("http://", "https://"))
    return (plain if served_elsewhere else name) if colon and name else model


_Said: TypeAlias = dict[str, Attribute | None]


def _run(strip: Strip) -> tuple[str, _Said]:
    said: _Said = {names.OPERATION: names.INVOKE_WORKFLOW, names.WORKFLOW: strip.name}
    return f"{names.INVOKE_WORKFLOW} {strip.name}", said


def _plan(strip: Strip) -> tuple[str, _Said]:
    steps = strip.details.get("steps")
    said: _Said = {names.OPERATION: names.PLAN, names.WORKFLOW: strip.name}
    said[names.STEPS] = steps if isinstance(steps, int) else None
    return f"{names.PLAN} {strip.name}", said


def _task(strip: Strip) -> tuple[str, _Said]:
    return f"task {strip.name}", {names.AGENT: _text(strip.details.get("executor"))}


def _handoff(strip: Strip) -> tuple[str, _Said]:
    said: _Said = {
        f"{names.HANDOFF}.{key}": _plain(value) for key, value in strip.details.items()
    }
    return f"handoff {strip.name}", said


def _attempt(strip: Strip) -> tuple[str, _Said]:
    details = strip.details
    agent = _text(details.get("executor")) or str(details.get("owner"))
    plans = strip.task_id.startswith(_PLANNERS) or agent.startswith(_PLANNERS)
    operation = names.PLAN if plans else names.INVOKE_AGENT
    model = _text(details.get("model"))
    said: _Said = {
        names.OPERATION: operation,
        names.AGENT: agent,
        names.REQUEST_MODEL: model and model_name(model),
        names.PROVIDER: model and provider_of(model),
        names.OWNER: _text(details.get("owner")),
        names.ATTEMPT: _plain(details.get("attempt")),
        names.CLAIM: _plain(details.get("claim")),
        names.CONFIDENCE: _plain(details.get("confidence")),
        names.FENCE: _text(details.get("fence")),
        names.TOKENS: _plain(details.get("tokens")),
        names.REQUESTS: _plain(details.get("requests")),
        names.COST: _number(details.get("cost_usd")),
    }
    return f"{operation} {agent}", said


def _call(strip: Strip) -> tuple[str, _Said]:
    spent = strip.details.get("spent")
    amounts = spent if isinstance(spent, dict) else {}
    said: _Said = {
        names.TOKENS: _plain(amounts.get("tokens")),
        names.REQUESTS: _plain(amounts.get("requests")),
        names.COST: _number(amounts.get("cost_usd")),
    }
    key = _text(strip.details.get("key"))
    if strip.details.get("operation") != names.CHAT:
        said |= {names.OPERATION: names.EXECUTE_TOOL, names.TOOL: strip.name}
        return f"{names.EXECUTE_TOOL} {strip.name}", said | {names.TOOL_CALL: key}
    model = model_name(strip.name)
    said |= {
        names.OPERATION: names.CHAT,
        names.REQUEST_MODEL: model,
        names.RESPONSE_MODEL: _text(strip.details.get("answered_by")),
        names.PROVIDER: provider_of(strip.name),
        names.INPUT_TOKENS: _plain(strip.details.get("tokens_in")),
        names.OUTPUT_TOKENS: _plain(strip.details.get("tokens_out")),
        names.CALL: key,
    }
    return f"{names.CHAT} {model}", said


def _gate(strip: Strip) -> tuple[str, _Said]:
    said: _Said = {
        names.EVALUATION: strip.name,
        names.EVALUATION_LABEL: strip.outcome,
        names.GATE_REASON: _text(strip.details.get("reason")),
        names.GATE_CACHED: bool(strip.details.get("cached")),
    }
    return f"gate {strip.name}", said


def _wait(strip: Strip) -> tuple[str, _Said]:
    return f"wait {strip.name}", {names.BY: _text(strip.details.get("by"))}


_KINDS: Final[Mapping[Kind, Callable[[Strip], tuple[str, _Said]]]] = {
    "run": _run,
    "plan": _plan,
    "task": _task,
    "handoff": _handoff,
    "attempt": _attempt,
    "call": _call,
    "gate": _gate,
    "wait": _wait,
}


def _text(value: JsonValue) -> str | None:
    return None if value is None else str(value)


def _plain(value: JsonValue) -> Attribute | None:
    return value if isinstance(value, str | int | float | bool) else None


def _number(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, str | int | float) and value != "" else None
