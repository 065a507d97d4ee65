"""What the user has configured, and where each value came from.

Flags win over the environment, the environment over files, files over what is built in. The
file is `agent-run.toml`, or `[tool.agent-run]` in `pyproject.toml`, found upwards.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import quote

from pydantic import Field, StringConstraints, ValidationError

from agent_run.contract.base import Contract, Duration, Flag, Line, Name, Whole
from agent_run.contract.faults import Fault, refusal, shown
from agent_run.contract.manifest import Host
from agent_run.contract.places import dotted, parts_of
from agent_run.contract.values import faults_of
from agent_run.errors import Unfit
from agent_run.wiring.toml_reading import TomlFile, read_toml

FILE: Final = "agent-run.toml"
SHARED_FILE: Final = "pyproject.toml"
TABLE: Final = ("tool", "agent-run")
STATE: Final = ".agent-run"
PREFIX: Final = "AGENT_RUN_"
FOR_EXECUTORS: Final = frozenset(
    {"TASK_ID", "ATTEMPT", "CLAIM", "MANIFEST", "BRIEF", "RECORD", "RUN_ID", "TRACE_ID"}
)
"""Variables that a worker sets for its executor; they configure nothing."""

FenceMode: TypeAlias = Literal["require", "prefer", "off"]
EnvName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class ExecutorSettings(Contract):
    """How one named executor is run."""

    preset: Literal["claude", "codex", "opencode", "aider", "mini-swe-agent"] | None = None
    command: Line | None = None
    """A shell command; its workspace is the current directory."""
    function: Line | None = None
    """`package.module:name` of a Python function."""
    agent: Literal["agent", "planner", "reviewer"] | None = None
    """A built-in executor that asks `model`."""
    model: Line | None = None
    base_url: Line | None = None
    """Where the model is served, when that is not the tool's own default."""
    api_key_env: EnvName | None = None
    """The variable that holds the key; its value is never written down."""
    program: Line | None = None
    """Path of the tool itself, when it is not on `PATH`."""
    pass_env: tuple[EnvName, ...] = ()
    """Variables of the user's environment that the executor may see."""
    readable: tuple[Line, ...] = ()
    """Further files and folders that the executor may read."""
    network: Literal["deny", "allow"] | tuple[Host, ...] | None = None
    """What the tool itself needs. `None` leaves it to preset and manifest."""
    memory_mb: Whole | None = Field(default=None, ge=64)
    cpu_sec: Whole | None = Field(default=None, ge=1)
    processes: Whole | None = Field(default=None, ge=1)


class Settings(Contract):
    """One frozen value with everything that can be configured."""

    root: Path
    """The repository, or the folder where the configuration was found."""
    store: Line = ""
    """URL of the ledger. Empty is `ledger.db` in the state folder."""
    owner: Line = "somebody"
    """Who claims when nobody is named."""
    fence: FenceMode = "prefer"
    dirty: Literal["refuse", "carry"] = "refuse"
    """What to do with uncommitted changes when work begins."""
    executor: Name | None = None
    """Who executes when neither flag nor manifest says it."""
    executors: dict[Name, ExecutorSettings] = Field(default_factory=dict)
    model: Line | None = None
    """The model to ask when nothing else is said, such as `anthropic:claude-haiku-5-5`."""
    review_model: Line | None = None
    """A model that reads every result against the constraints of its manifest."""
    max_output_mb: Whole = Field(default=16, ge=1, le=1_024)
    executor_timeout: Duration = timedelta(hours=1)
    """How long one attempt may take where its manifest sets no time."""
    day_budget_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    telemetry: Flag = False
    notify: Line | None = None
    """Shell command or URL that is told, as JSON, about each new item for a person."""

    @property
    def state(self) -> Path:
        """The folder of ledger, blobs and workspaces."""
        return self.root / STATE

    @property
    def store_url(self) -> str:
        return self.store or f"sqlite:///{quote(str(self.state / 'ledger.db'))}"


@dataclass(frozen=True, slots=True)
class Configured:
    """Settings, and for each key the place its value came from."""

    settings: Settings
    origins: Mapping[str, str]
    unknown: tuple[str, ...] = ()
    """Variables that look like ours and mean nothing."""


def configure(
    *,
    start: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
) -> Configured:
    """Return the settings that hold in folder `start`.

    Raises:
        InvalidDocument: A file or variable holds something that is not a setting.
    """
    folder = (start or current_folder()).resolve()
    written = _from_files(folder)
    file = written.file if written else None
    values: dict[str, Any] = {"root": str(file.parent if file else _root(folder))}
    origins = {"root": str(file) if file else "the current folder"}
    values["owner"], origins["owner"] = _who(environ), "the user's name"
    for key, value in _table(written).items():
        values[key], origins[key] = value, str(file)
    known, unknown = _from_environment(environ)
    for key, value in known.items():
        values[key], origins[key] = value, f"{PREFIX}{key.upper()}"
    for key, value in (flags or {}).items():
        if value is not None:
            values[key], origins[key] = value, f"--{key.replace('_', '-')}"
    return Configured(_validated(values, origins, written), origins, unknown)


def current_folder() -> Path:
    """Return the folder that the program was started in.

    Raises:
        Unfit: It is gone.
    """
    try:
        return Path.cwd()
    except OSError as error:
        msg = f"the current folder cannot be used: {error.strerror}"
        raise Unfit(msg) from error


def _from_files(folder: Path) -> TomlFile | None:
    for place in (folder, *folder.parents):
        own, shared = place / FILE, place / SHARED_FILE
        if _is_there(own):
            # Whatever lies there under our name is not passed over in silence.
            return read_toml(own)
        if _is_there(shared) and shared.is_file():
            found = read_toml(shared)
            if _holds_ours(found.value):
                return found
    return None


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # a folder above that nobody may look into holds nothing for us
        return False


def _holds_ours(value: dict[str, Any]) -> bool:
    tools = value.get("tool")
    return isinstance(tools, dict) and TABLE[-1] in tools


def _table(written: TomlFile | None) -> dict[str, Any]:
    """Return the settings that stand in a file."""
    if written is None:
        return {}
    if written.file.name == FILE:
        return written.value
    table = written.value["tool"][TABLE[-1]]
    if not isinstance(table, dict):
        line, column = written.place(TABLE)
        told = f"is {shown(table)}, expected a table"
        raise refusal([Fault(str(written.file), line, column, ".".join(TABLE), told)])
    return table


def _root(folder: Path) -> Path:
    """Return the repository the folder lies in, else the folder that has a ledger, else it."""
    for place in (folder, *folder.parents):
        if _is_there(place / STATE) or _is_there(place / ".git"):
            return place
    return folder


def _who(environ: Mapping[str, str]) -> str:
    return environ.get("USER") or environ.get("LOGNAME") or "somebody"


def _from_environment(environ: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    known: dict[str, str] = {}
    unknown: list[str] = []
    scalars = set(Settings.model_fields) - {"root", "executors"}
    for name, value in environ.items():
        if not name.startswith(PREFIX) or name.removeprefix(PREFIX) in FOR_EXECUTORS:
            continue
        key = name.removeprefix(PREFIX).lower()
        if key in scalars:
            known[key] = value
        else:
            unknown.append(name)
    return known, tuple(sorted(unknown))


def _validated(
    values: dict[str, Any], origins: Mapping[str, str], written: TomlFile | None
) -> Settings:
    read = _read_numbers(values, origins)
    try:
        return Settings.model_validate(read)
    except ValidationError as error:
        found = faults_of(error, wanted=Settings, value=read)
        raise refusal(_traced(fault, origins, written) for fault in found) from error


def _traced(fault: Fault, origins: Mapping[str, str], written: TomlFile | None) -> Fault:
    """Return the fault of a setting with the place that the setting came from."""
    parts = parts_of(fault.key)
    origin = origins.get(str(parts[0]) if parts else "", "the settings")
    if written is None or origin != str(written.file):
        return replace(fault, source=origin, key=dotted(parts[1:]))
    within = () if written.file.name == FILE else TABLE
    line, column = written.place((*within, *parts))
    return replace(fault, source=origin, line=line, column=column)


def _read_numbers(values: dict[str, Any], origins: Mapping[str, str]) -> dict[str, Any]:
    """Return the values with numbers and flags of the environment read as such."""
    read = dict(values)
    for key, value in values.items():
        if origins.get(key, "").startswith(PREFIX) and isinstance(value, str):
            lowered = value.strip().lower()
            if lowered in {"true", "false"}:
                read[key] = lowered == "true"
            elif lowered.isascii() and lowered.isdigit():
                read[key] = int(lowered)
    return read
