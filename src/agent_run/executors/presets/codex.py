"""Codex: `codex exec --json`, a record by schema, everything else in its configuration file.

Its own sandbox is off because ours is around it, and sandboxes do not nest. Its home must not
lie below the temporary folder, or every command fails while it still exits with 0.
"""

import json
import os.path
import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agent_run.executors.presets.prompt import prompt
from agent_run.executors.presets.reading import (
    NOTHING,
    Event,
    code,
    count,
    events,
    inner,
    objects,
    reason,
    text,
)
from agent_run.executors.presets.record import SCHEMA_TEXT, record_in
from agent_run.executors.presets.shapes import (
    Assignment,
    CommandRun,
    Endpoint,
    Invocation,
    Observation,
    Output,
    Preset,
)

VENDOR: Final = "https://api.openai.com/v1"
KEY: Final = "AGENT_RUN_MODEL_KEY"
RETRIES: Final = 3
SWITCHED_OFF: Final = (
    "api_key_model_discovery",
    "apps",
    "browser_use",
    "computer_use",
    "daemon_auto_start",
    "goals",
    "hooks",
    "image_generation",
    "multi_agent",
    "plugin_discovery_prefetch",
    "plugin_sharing",
    "plugins",
    "remote_plugin",
    "skill_search",
    "tool_suggest",
    # With it on, a dead endpoint is waited for without end.
    "unbounded_connection_retries",
)
_SHELLS: Final = frozenset({"bash", "sh", "zsh"})
_SHOWN: Final[Mapping[str, str]] = MappingProxyType(
    {"agent_message": "text", "command_execution": "command", "error": "message"}
)


def invocation(assignment: Assignment) -> Invocation:
    endpoint, home = assignment.endpoint, assignment.home
    key = endpoint.api_key_env or ("OPENAI_API_KEY" if endpoint.base_url is None else None)
    own = home / ".codex"
    schema = home / "record.schema.json"
    env = {"HOME": str(home), "TMPDIR": str(home / "tmp"), "CODEX_HOME": str(own)}
    flags = (
        "exec",
        "--json",
        "--ephemeral",
        "--skip-git-repo-check",
        *("--color", "never"),
        *("-C", str(assignment.workspace)),
        *("-s", "danger-full-access"),
        *("--output-schema", str(schema)),
        "--",
    )
    return Invocation(
        argv=(*assignment.program.argv, *flags, prompt(assignment)),
        cwd=assignment.workspace,
        env=env if key else {**env, KEY: "none"},
        secrets={} if key is None else {KEY: key},
        files={own / "config.toml": configuration(endpoint), schema: SCHEMA_TEXT},
        folders=(own, home / "tmp"),
        results={},
        readable=assignment.program.readable,
        hosts=endpoint.hosts(VENDOR),
    )


def configuration(endpoint: Endpoint) -> str:
    """Return the configuration file: one provider, no traffic but the model's."""
    model = [f'model = "{endpoint.model}"'] if endpoint.model is not None else []
    lines = [
        *model,
        'model_provider = "agent_run"',
        'web_search = "disabled"',
        "check_for_update_on_startup = false",
        "[analytics]",
        "enabled = false",
        "[feedback]",
        "enabled = false",
        "[shell_environment_policy]",
        'inherit = "all"',
        f'exclude = ["{KEY}"]',
        "[features]",
        *(f"{name} = false" for name in SWITCHED_OFF),
        "[model_providers.agent_run]",
        'name = "agent_run"',
        f'base_url = "{endpoint.base_url or VENDOR}"',
        'wire_api = "responses"',
        f'env_key = "{KEY}"',
        f"request_max_retries = {RETRIES}",
        f"stream_max_retries = {RETRIES}",
    ]
    return "\n".join(lines) + "\n"


def read_events(output: Output) -> Observation:
    seen = tuple(events(output.stdout))
    items = [inner(one, "item") for one in seen if one.get("type") == "item.completed"]
    answers = [text(one.get("text")) for one in items if one.get("type") == "agent_message"]
    usages = [inner(one, "usage") for one in seen if one.get("type") == "turn.completed"]
    return Observation(
        record=record_in(answers[-1]) if answers else None,
        commands_run=_commands(seen),
        tokens_in=sum(count(one.get("input_tokens")) for one in usages),
        tokens_out=sum(count(one.get("output_tokens")) for one in usages),
        transcript=tuple(_line(item) for item in items),
        error=_error(seen, output),
    )


def _error(seen: tuple[Event, ...], output: Output) -> str | None:
    kinds = [one.get("type") for one in seen]
    if output.exit_code == 0 and "turn.completed" in kinds and "turn.failed" not in kinds:
        return None
    failed = next((one for one in reversed(seen) if one.get("type") == "turn.failed"), NOTHING)
    told = next((one for one in reversed(seen) if one.get("type") == "error"), NOTHING)
    said = text(inner(failed, "error").get("message")) or text(told.get("message"))
    return reason(said, output, "codex")


def _commands(seen: tuple[Event, ...]) -> tuple[CommandRun, ...]:
    # A command that was running when the end came has started, but never completed.
    runs: dict[str, CommandRun] = {}
    for event in seen:
        item = inner(event, "item")
        if item.get("type") == "command_execution":
            command = unwrapped(text(item.get("command")))
            runs[str(item.get("id"))] = CommandRun(command, code(item.get("exit_code")))
    return tuple(runs.values())


def unwrapped(command: str) -> str:
    """Return the command inside `/bin/bash -lc '...'`, or `command` where it is not wrapped."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    wrapped = len(words) == 3 and words[1] in {"-c", "-lc"}  # noqa: PLR2004 - shell, flag, text
    return words[2] if wrapped and os.path.basename(words[0]) in _SHELLS else command  # noqa: PTH119


def _line(item: Event) -> str:
    kind = text(item.get("type"))
    if kind == "file_change":
        changed = [text(one.get("path")) for one in objects(item.get("changes"))]
        return f"{kind} {' '.join(changed)}"
    shown = item.get(_SHOWN.get(kind, ""))
    return f"{kind} {text(shown) or text(json.dumps(dict(item), ensure_ascii=False))}"


CODEX: Final = Preset("codex", "codex", invocation, read_events)
