"""Putting a site together: workspace, fence, gates and executors of one project."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from agent_run.desk import Desk
from agent_run.engine.site import Site
from agent_run.engine.telling import Listener, to_nobody
from agent_run.errors import ContractError
from agent_run.executors.coding_agent import CodingAgent
from agent_run.executors.command import CommandExecutor
from agent_run.executors.function import FunctionExecutor
from agent_run.executors.presets.catalogue import PRESETS
from agent_run.executors.presets.program import find_program
from agent_run.executors.presets.shapes import Endpoint, Program
from agent_run.gates.cache import FileCache, NoCache
from agent_run.gates.changes import DiffSizeGate, ScopeGate
from agent_run.gates.commands import CommandsGate, InvariantsGate
from agent_run.gates.record import ConfidenceGate, RecordGate
from agent_run.ports.executor import Executor
from agent_run.ports.fence import Limits
from agent_run.ports.gate import Gate
from agent_run.ports.workspace import Workspace
from agent_run.wiring.apart import ProjectCopy
from agent_run.wiring.loading import function_at
from agent_run.wiring.opening import wall_clock
from agent_run.wiring.settings import ExecutorSettings, Settings
from agent_run.wiring.toolbox import Toolbox, toolbox
from agent_run.workspace.fence import open_fence
from agent_run.workspace.removal import remove_tree
from agent_run.workspace.trees import open_workspace

GATES: Final[tuple[Gate, ...]] = (
    ScopeGate(),
    RecordGate(),
    CommandsGate(),
    InvariantsGate(),
    DiffSizeGate(),
    ConfidenceGate(),
)
_BUILT_IN: Final = "agent:"
DEFAULT_PROCESSES: Final = 512
DEFAULT_DISK_MB: Final = 4_096
DEFAULT_MEMORY_MB: Final = 8_192
_OWN_LIMITS: Final = ("memory_mb", "cpu_sec", "processes")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller wants to be different from the settings."""

    tell: Listener = to_nobody
    cached: bool = True
    dirty: str | None = None
    copy: ProjectCopy | None = None
    """Work on this copy and keep everything beside it. `None` works on the project."""
    files: bool = True
    """Whether tasks may touch files. Without, the project is not even looked at."""


def open_site(desk: Desk, settings: Settings, wanted: Wanted | None = None) -> Site:
    """Return everything needed to work on tasks of the project at `settings.root`.

    Raises:
        FenceUnavailable: The settings require a fence that does not work here.
        WorkspaceError: The project cannot be worked on.
    """
    wanted = wanted or Wanted()
    copy = wanted.copy
    state = copy.state if copy else settings.state
    state.mkdir(parents=True, exist_ok=True)
    # The tools are those of the project itself, whose environment no copy has.
    tools = tools_of(settings)
    return Site(
        desk=desk,
        workspace=_workspace(settings.root, state, copy) if wanted.files else None,
        fence=open_fence(settings.fence),
        gates=_gates(desk, settings),
        cache=FileCache(state / "cache") if wanted.cached else NoCache(),
        clock=wall_clock,
        folder=state / "work",
        remove=remove_tree,
        env=tools.env,
        readable=tools.readable,
        imports=tools.imports,
        environment=tools.fingerprint(),
        limits=Limits(
            wall_sec=settings.executor_timeout.total_seconds(),
            memory_mb=DEFAULT_MEMORY_MB,
            processes=DEFAULT_PROCESSES,
            disk_mb=DEFAULT_DISK_MB,
            output_bytes=settings.max_output_mb << 20,
        ),
        dirty="carry" if (wanted.dirty or settings.dirty) == "carry" else "refuse",
        tell=wanted.tell,
    )


def _workspace(root: Path, state: Path, copy: ProjectCopy | None) -> Workspace:
    return copy.workspace() if copy else open_workspace(root, state / "workspaces")


def _gates(desk: Desk, settings: Settings) -> tuple[Gate, ...]:
    if settings.review_model is None:
        return GATES
    # Models are loaded only where one is asked.
    models = import_module("agent_run.wiring.models")
    gate: Gate = models.review_gate(settings.review_model, desk, settings)
    return (*GATES, gate)


def tools_of(settings: Settings) -> Toolbox:
    """Return the tools that executors and gates of the project may use."""
    return toolbox(os.environ, root=settings.root)


def open_executor(
    name: str | None,
    settings: Settings,
    *,
    command: str | None = None,
    desk: Desk | None = None,
) -> Executor:
    """Return the executor called `name`, or one that runs `command`.

    Raises:
        ContractError: No executor of this name is configured or built in.
    """
    tools = tools_of(settings)
    if command is not None:
        return CommandExecutor(name or "command", command, tools.env, tools.readable)
    wanted = name or settings.executor
    if wanted is None:
        msg = "no executor is named: use --executor, --command, or set one in agent-run.toml"
        raise ContractError(msg)
    configured = settings.executors.get(wanted)
    if configured is None and wanted in PRESETS:
        configured = ExecutorSettings(preset=wanted)
    if configured is None and wanted.startswith(_BUILT_IN):
        model = wanted.removeprefix(_BUILT_IN)
        configured = ExecutorSettings(agent="agent", model=model)
    if configured is not None and configured.agent is not None:
        return _asking(wanted, configured, settings, tools, desk)
    if configured is None:
        known = ", ".join(sorted({*settings.executors, *PRESETS}))
        msg = f"executor {wanted!r} is not configured, expected one of {known}"
        raise ContractError(msg)
    return _built(wanted, configured, settings, tools)


def _built(
    name: str, configured: ExecutorSettings, settings: Settings, tools: Toolbox
) -> Executor:
    env = {**tools.env, **_passed_on(configured)}
    readable = (*tools.readable, *(settings.root / place for place in configured.readable))
    if configured.command is not None:
        return CommandExecutor(
            name, configured.command, env, readable, configured.network, _limits(configured)
        )
    if configured.function is not None:
        return _function(name, configured.function, settings.root)
    if configured.preset is None:
        msg = f"executor {name!r} has neither command, preset nor function"
        raise ContractError(msg)
    preset = PRESETS[configured.preset]
    return CodingAgent(
        name,
        preset,
        find=_finder(configured.program or preset.program, tools.path),
        endpoint=Endpoint(
            base_url=configured.base_url,
            model=configured.model or settings.model,
            api_key_env=configured.api_key_env,
        ),
        env=env,
        secret=os.environ.get,
        readable=readable,
        network=configured.network,
        limits=_limits(configured),
    )


def _limits(configured: ExecutorSettings) -> Mapping[str, int]:
    named = {name: getattr(configured, name) for name in _OWN_LIMITS}
    return {name: limit for name, limit in named.items() if limit is not None}


def _asking(
    name: str,
    configured: ExecutorSettings,
    settings: Settings,
    tools: Toolbox,
    desk: Desk | None,
) -> Executor:
    if desk is None:
        msg = f"executor {name!r} asks a model, which needs a ledger to pay from"
        raise ContractError(msg)
    # Models are loaded only where one is asked.
    asking = import_module("agent_run.wiring.models").Asking(desk, settings, tools)
    model = configured.model
    if model is not None and configured.base_url is not None:
        model = f"{model}@{configured.base_url}"
    build: Callable[..., Executor] = getattr(asking, str(configured.agent))
    return build(name, model, key=configured.api_key_env)


def _finder(program: str, path: str) -> Callable[[], Program]:
    place = Path(program)
    if place.is_absolute():
        path = os.pathsep.join((str(place.parent), path))
        program = place.name
    return lambda: find_program(program, path)


def _passed_on(configured: ExecutorSettings) -> Mapping[str, str]:
    return {name: os.environ[name] for name in configured.pass_env if name in os.environ}


def _function(name: str, place: str, root: Path) -> Executor:
    called = f"executor {name!r}: function"
    found = function_at(place, called=called, root=root)
    if not isinstance(found, FunctionExecutor):
        msg = f"{called} {place!r} is not marked with @executor"
        raise ContractError(msg)
    return found
