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

from agent_run.executors.presets import reading, shapes
from agent_run.executors.presets.prompt import prompt
from agent_run.executors.presets.record import SCHEMA_TEXT, record_in

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


def invocation(assignment: shapes.Assignment) -> shapes.Invocation:
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
    return shapes.Invocation(
        argv=(*assignment.program.argv, *flags, prompt(assignment)),
        cwd=assignment.workspace,
        env=env if key else {**env, KEY: "none"},
        secrets={} if key is None else {KEY: key},
        files={own / "config.toml": configuration(endpoint), schema: SCHEMA_TEXT},
        folders=(own, home / "tmp"),
        readable=assignment.program.readable,
        hosts=endpoint.hosts(VENDOR),
    )


def configuration(endpoint: shapes.Endpoint) -> str:
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


def read_events(output: shapes.Output) -> shapes.Observation:
    seen = tuple(reading.events(output.stdout))
    items = [reading.inner(one, "item") for one in seen if one.get("type") == "item.completed"]
    answers = [
        reading.text(one.get("text")) for one in items if one.get("type") == "agent_message"
    ]
    usages = [
        reading.inner(one, "usage") for one in seen if one.get("type") == "turn.completed"
    ]
    return shapes.Observation(
        record=record_in(answers[-1]) if answers else None,
        commands_run=_commands(seen),
        tokens_in=sum(reading.count(one.get("input_tokens")) for one in usages),
        tokens_out=sum(reading.count(one.get("output_tokens")) for one in usages),
        transcript=tuple(_line(item) for item in items),
        error=_error(seen, output),
    )


def _error(seen: tuple[reading.Event, ...], output: shapes.Output) -> str | None:
    kinds = [one.get("type") for one in seen]
    if output.exit_code == 0 and "turn.completed" in kinds and "turn.failed" not in kinds:
        return None
    failed = next(
        (one for one in reversed(seen) if one.get("type") == "turn.failed"), reading.NOTHING
    )
    told = next((one for one in reversed(seen) if one.get("type") == "error"), reading.NOTHING)
    said = reading.text(reading.inner(failed, "error").get("message")) or reading.text(
        told.get("message")
    )
    return reading.reason(said, output, "codex")


def _commands(seen: tuple[reading.Event, ...]) -> tuple[shapes.CommandRun, ...]:
    # A command that was running when the end came has started, but never completed.
    runs: dict[str, shapes.CommandRun] = {}
    for event in seen:
        item = reading.inner(event, "item")
        if item.get("type") == "command_execution":
            command = unwrapped(reading.text(item.get("command")))
            runs[str(item.get("id"))] = shapes.CommandRun(
                command, reading.code(item.get("exit_code"))
            )
    return tuple(runs.values())


def unwrapped(command: str) -> str:
    """Return the command inside `/bin/bash -lc '...'`, or `command` where it is not wrapped."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    wrapped = len(words) == 3 and words[1] in {"-c", "-lc"}  # noqa: PLR2004 - shell, flag, text
    return words[2] if wrapped and os.path.basename(words[0]) in _SHELLS else command  # noqa: PTH119


def _line(item: reading.Event) -> str:
    kind = reading.text(item.get("type"))
    if kind == "file_change":
        changed = [
            reading.text(one.get("path")) for one in reading.objects(item.get("changes"))
        ]
        return f"{kind} {' '.join(changed)}"
    shown = item.get(_SHOWN.get(kind, ""))
    told = reading.text(shown) or reading.text(json.dumps(dict(item), ensure_ascii=False))
    return f"{kind} {told}"


CODEX: Final = shapes.Preset("codex", "codex", invocation, read_events)
