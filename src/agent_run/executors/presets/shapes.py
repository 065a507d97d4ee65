"""What a preset is given, what it wants to be run, and what it makes of the output.

A preset starts nothing: it turns an `Assignment` into an `Invocation`, and the `Output` of
that into an `Observation`. Running it, inside a fence and a wall clock, is the caller's part.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import JsonValue

from agent_run.errors import ContractError

_MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9._~/-]*)?")
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the command line finds its language model.

    Raises:
        ContractError: a value cannot be written safely into flags and configuration files.
    """

    base_url: str | None = None
    """As the vendors' libraries want it, with `/v1`. `None` means the vendor's own."""
    model: str | None = None
    """`None` means that the command line chooses."""
    api_key_env: str | None = None
    """The variable of the user's environment that holds the key. `None` means no key."""

    def __post_init__(self) -> None:
        checks = (
            ("base_url", self.base_url, _ADDRESS, "an address like 'https://host/v1'"),
            ("model", self.model, _MODEL, "a model's name without spaces"),
            ("api_key_env", self.api_key_env, _VARIABLE, "the name of a variable"),
        )
        for name, value, form, expected in checks:
            if value is not None and not form.fullmatch(value):
                msg = f"{name} of the model endpoint is {value!r}, expected {expected}"
                raise ContractError(msg)
        self.hosts(self.base_url or "")

    def hosts(self, default: str) -> tuple[str, ...]:
        """Return `host:port` of the endpoint, or of `default` where it names no address."""
        address = self.base_url or default
        try:
            parts = urlsplit(address)
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError as error:
            msg = f"base_url of the model endpoint is {address!r}, which is no address: {error}"
            raise ContractError(msg) from error
        host = parts.hostname
        if host is None:
            return ()
        return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}",)


@dataclass(frozen=True, slots=True)
class Program:
    """An installed command line: how it is started and what it must be able to read."""

    argv: tuple[str, ...]
    readable: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """One attempt at one task, as a coding agent gets to know it."""

    brief: str
    """The Markdown brief: objective, constraints, allowed paths, earlier findings."""
    brief_path: Path
    """The same brief as a file the agent can read, for briefs too long for a flag."""
    workspace: Path
    home: Path
    """A private, empty home; everything a preset writes lies below it."""
    program: Program
    endpoint: Endpoint = Endpoint()
    editable: tuple[str, ...] = ()
    """Existing files of the workspace that may be changed, for agents that must be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What to start. Standard input is closed; the wall clock belongs to the caller."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    """Beside what every executor gets; nothing of the user's environment is in it."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Variable inside -> variable of the user's environment whose value it gets."""
    files: Mapping[Path, str] = field(default_factory=dict)
    """Configuration to write below the private home before the start."""
    folders: tuple[Path, ...]
    """Folders below the private home that must exist before the start."""
    results: Mapping[str, Path] = field(default_factory=dict)
    """Files to read afterwards, where they exist. The agent wrote them: do not follow links."""
    readable: tuple[Path, ...]
    hosts: tuple[str, ...]
    """All that the command line needs of the network, as `host:port`."""


@dataclass(frozen=True, slots=True)
class Output:
    """What was left when the command line was over."""

    stdout: str
    stderr: str
    exit_code: int | None
    """`None` means that it was stopped and did not exit by itself."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The text of `Invocation.results`, under the same names."""


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A shell command the agent is seen to have run."""

    command: str
    exit_code: int | None = None
    """`None` means that it is not known how it ended."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What the output tells. It came from the agent's own process: seen, but not proved."""

    record: Mapping[str, JsonValue] | None = None
    """What the agent says it did. `None` means that it gave no readable record."""
    commands_run: tuple[CommandRun, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    requests_made: int | None = None
    """Questions to the model. `None` means that the command line does not count them."""
    cost_usd: Decimal | None = None
    """`None` means that the price is unknown, which is not free."""
    model: str | None = None
    """As the command line names it. `None` means that it does not."""
    transcript: tuple[str, ...] = ()
    error: str | None = None
    """Why the agent did not come to an end by itself. `None` means that it did."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One coding-agent command line."""

    name: str
    program: str
    """What its program is called on a search path."""
    invocation: Callable[[Assignment], Invocation]
    read_events: Callable[[Output], Observation]
