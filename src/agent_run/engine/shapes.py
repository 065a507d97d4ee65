"""What a run follows: a plan, workers under an orchestrator, or specialists by routing.

It is written on the first page of the run, so that whoever resumes it follows the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pydantic import JsonValue

from agent_run.contract.base import RunId
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.contract.shapes import Orchestration, Routing
from agent_run.errors import ContractError
from agent_run.ledger.state import SETTLED, RunState, Status
from agent_run.topology.orchestrator import orchestrator
from agent_run.topology.plan_execute import Replanning, plan_execute
from agent_run.topology.routing import routing
from agent_run.topology.shape import Topology

Shape: TypeAlias = Plan | Orchestration | Routing

_MODELS: Final[Mapping[str, type[Shape]]] = {
    "plan": Plan,
    "orchestration": Orchestration,
    "routing": Routing,
}


@dataclass(frozen=True, slots=True)
class Followed:
    """What a run follows, and who plans anew if it is a plan that fails."""

    shape: Shape
    replanning: Replanning | None = None

    @property
    def at_once(self) -> int | None:
        """How many tasks may be worked on at once. `None` means no limit."""
        return None if isinstance(self.shape, Routing) else self.shape.max_parallel

    def document(self) -> JsonValue:
        """Return all of it as the first page of a run keeps it."""
        kind = next(name for name, model in _MODELS.items() if isinstance(self.shape, model))
        told = self.shape.model_dump(mode="json", exclude_defaults=True)
        return {kind: told, "replanning": _replanning_document(self.replanning)}

    def topology(self, *, trace_id: str) -> Topology:
        """Return what says from the state of the run what comes next."""
        match self.shape:
            case Plan():
                return plan_execute(self.shape, replanning=self.replanning)
            case Orchestration():
                return orchestrator(self.shape)
            case Routing():
                return routing(self.shape.model_copy(update={"trace_id": trace_id}))


def followed_by(run: RunState, run_id: RunId) -> Followed:
    """Return what a run was opened for.

    Raises:
        ContractError: It was opened for nothing.
    """
    document = run.plan if isinstance(run.plan, dict) else {}
    kind = next((name for name in _MODELS if name in document), None)
    if kind is None:
        msg = f"run {run_id!r} follows no plan; execute its tasks one by one"
        raise ContractError(msg)
    return Followed(_MODELS[kind].model_validate(document[kind]), _replanning_of(document))


def decides(shape: Shape, run: RunState) -> Status | None:
    """Return the status that the run as a whole has; `None` where every task counts."""
    if not isinstance(shape, Orchestration):
        return None
    task = run.tasks.get(shape.synthesis.task_id)
    # Workers may fail as long as enough do not, so what joins their results decides.
    return task.status if task is not None and task.status in SETTLED else None


def _replanning_of(document: Mapping[str, JsonValue]) -> Replanning | None:
    again = document.get("replanning")
    if not isinstance(again, dict):
        return None
    most = again["most"]
    planner = Manifest.model_validate(again["planner"])
    return Replanning(planner, most if isinstance(most, int) else 1)


def _replanning_document(replanning: Replanning | None) -> JsonValue:
    if replanning is None:
        return None
    planner = replanning.planner.model_dump(mode="json", exclude_defaults=True)
    return {"planner": planner, "most": replanning.most}
