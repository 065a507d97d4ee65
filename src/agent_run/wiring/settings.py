"""What the user has configured, and where each value came from.

Flags win over the environment, the environment over files, files over what is built in. The
file is `agent-run.toml`, or `[tool.agent-run]` in `pyproject.toml`, found upwards.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import quote

from pydantic import Field, StringConstraints, ValidationError

from agent_run.contract.base import Contract, Duration, Flag, Line, Name, Whole
from agent_run.contract.manifest import Host
from agent_run.errors import InvalidDocument

FILE: Final = "agent-run.toml"
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
    day_budget_usd: Annotated[float, Field(gt=0)] | None = None
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
    folder = (start or Path.cwd()).resolve()
    file, found = _from_files(folder)
    values: dict[str, Any] = {"root": str(file.parent if file else _root(folder))}
    origins = {"root": str(file) if file else "the current folder"}
    values["owner"], origins["owner"] = _who(environ), "the user's name"
    for key, value in found.items():
        values[key], origins[key] = value, str(file)
    known, unknown = _from_environment(environ)
    for key, value in known.items():
        values[key], origins[key] = value, f"{PREFIX}{key.upper()}"
    for key, value in (flags or {}).items():
        if value is not None:
            values[key], origins[key] = value, f"--{key.replace('_', '-')}"
    return Configured(_validated(values, origins), origins, unknown)


def _from_files(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    for place in (folder, *folder.parents):
        own, shared = place / FILE, place / "pyproject.toml"
        if own.is_file():
            return own, _parsed(own)
        if shared.is_file():
            table = _parsed(shared).get("tool", {}).get("agent-run")
            if isinstance(table, dict):
                return shared, table
    return None, {}


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"{file}: is not TOML: {error}"
        raise InvalidDocument(msg) from error
    except OSError as error:
        msg = f"{file}: cannot be read: {error.strerror}"
        raise InvalidDocument(msg) from error


def _root(folder: Path) -> Path:
    """Return the repository the folder lies in, else the folder that has a ledger, else it."""
    for place in (folder, *folder.parents):
        if (place / STATE).is_dir() or (place / ".git").exists():
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


def _validated(values: dict[str, Any], origins: Mapping[str, str]) -> Settings:
    try:
        return Settings.model_validate(_read_numbers(values, origins))
    except ValidationError as error:
        faults = []
        for detail in error.errors(include_url=False):
            key = ".".join(map(str, detail["loc"]))
            origin = origins.get(str(detail["loc"][0]), "the settings")
            faults.append(f"{origin}: {key}: {detail['msg']}, got {detail['input']!r}")
        raise InvalidDocument("\n".join(faults), tuple(faults)) from error


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
