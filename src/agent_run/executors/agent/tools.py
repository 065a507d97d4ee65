"""The tools of the built-in agent, as the model sees them, and which of them a task allows."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from agent_run.contract.manifest import Manifest
from agent_run.errors import ContractError
from agent_run.ports.model import ToolOffer

FINAL: Final = "final_result"

_TEXT: Final[dict[str, JsonValue]] = {"type": "string"}
_NUMBER: Final[dict[str, JsonValue]] = {"type": "integer"}


def _offer(
    name: str, description: str, needed: Mapping[str, JsonValue], **more: JsonValue
) -> ToolOffer:
    return ToolOffer(
        name=name,
        description=description,
        parameters={
            "type": "object",
            "properties": {**needed, **more},
            "required": list(needed),
            "additionalProperties": False,
        },
    )


READ: Final = _offer(
    "read",
    "Read a text file, or list a folder. Paths are relative to the project; '' is its root.",
    {"path": _TEXT},
    first_line=_NUMBER,
    lines=_NUMBER,
)
SEARCH: Final = _offer(
    "search",
    "Find a plain text in the files, or files by name where text is ''. `glob` limits the "
    "files, as in 'src/**/*.py'.",
    {"text": _TEXT},
    glob=_TEXT,
)
EDIT: Final = _offer(
    "edit",
    "Replace `old`, which must stand in the file exactly once, by `new`. With an empty `old` "
    "the file is created; it must not exist.",
    {"path": _TEXT, "old": _TEXT, "new": _TEXT},
)
RUN: Final = _offer(
    "run",
    "Run a shell command in the project and see its output.",
    {"command": _TEXT},
    timeout_sec=_NUMBER,
)
FETCH: Final = _offer("fetch", "Get a page over HTTP, as text.", {"url": _TEXT})

OFFERS: Final[Mapping[str, ToolOffer]] = {
    offer.name: offer for offer in (READ, SEARCH, EDIT, RUN, FETCH)
}
WITH_EFFECT: Final = frozenset({"edit", "run"})

_ALSO_CALLED: Final[Mapping[str, str]] = {
    "shell": "run",
    "bash": "run",
    "write": "edit",
    "grep": "search",
    "glob": "search",
    "web": "fetch",
}


def allowed_tools(manifest: Manifest) -> tuple[ToolOffer, ...]:
    """Return the tools that the task allows; who may edit or run may also look.

    Raises:
        ContractError: The manifest names a tool that the built-in agent does not have.
    """
    if not manifest.tools:
        wanted = set(OFFERS)
    else:
        wanted = {_known(name) for name in manifest.tools}
        if wanted & WITH_EFFECT:
            wanted |= {"read", "search"}
    if manifest.network == "deny":
        wanted.discard("fetch")
    if not manifest.allowed_paths:
        wanted.discard("edit")
    return tuple(offer for name, offer in OFFERS.items() if name in wanted)


def _known(name: str) -> str:
    known = _ALSO_CALLED.get(name.lower(), name.lower())
    if known not in OFFERS:
        msg = f"tool {name!r} is not one of the built-in agent, expected {', '.join(OFFERS)}"
        raise ContractError(msg)
    return known
