"""opencode: `opencode run --format json`, with its configuration handed over as a file.

It waits for a dead endpoint without end and prints nothing, so its log is asked for on stderr.
"""

import json
import re
from typing import Final

from agent_run.executors.presets import reading, shapes
from agent_run.executors.presets.demands import address, key_of
from agent_run.executors.presets.prompt import prompt, record_as_answer
from agent_run.executors.presets.record import record_in

PROVIDER: Final = "agent_run"
KEY: Final = "AGENT_RUN_MODEL_KEY"
_LOGGED: Final = re.compile(r'level=ERROR .*?error\.error="((?:[^"\\]|\\.)*)"')


def invocation(assignment: shapes.Assignment) -> shapes.Invocation:
    endpoint, home = assignment.endpoint, assignment.home
    base_url, model = address(endpoint, "opencode")
    settings = home / "opencode.json"
    env = {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "OPENCODE_CONFIG": str(settings),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "OPENCODE_DISABLE_SHARE": "1",
        "OPENCODE_PURE": "1",
        # It installs a package of its own in the background, which nothing here needs.
        "npm_config_offline": "true",
    }
    placeholder, secrets = key_of(endpoint, KEY)
    flags = (
        *("run", "--pure", "--title", "agent-run", "--format", "json"),
        *("--print-logs", "--log-level", "ERROR"),
        *("-m", f"{PROVIDER}/{model}", "--"),
    )
    return shapes.Invocation(
        argv=(*assignment.program.argv, *flags, prompt(assignment, record_as_answer())),
        cwd=assignment.workspace,
        env={**env, **placeholder},
        secrets=secrets,
        files={settings: configuration(base_url, model)},
        folders=(home / "tmp",),
        readable=assignment.program.readable,
        hosts=endpoint.hosts(base_url),
    )


def configuration(base_url: str, model: str) -> str:
    """Return the configuration file: one provider, every permission, no side questions."""
    options = {"baseURL": base_url, "apiKey": f"{{env:{KEY}}}"}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": PROVIDER,
        "options": options,
        "models": {model: {"name": model}},
    }
    return json.dumps(
        {
            "autoupdate": False,
            "share": "disabled",
            "snapshot": False,
            "lsp": False,
            "formatter": False,
            "model": f"{PROVIDER}/{model}",
            "small_model": f"{PROVIDER}/{model}",
            "agent": {"title": {"disable": True}},
            "permission": {"*": "allow"},
            "provider": {PROVIDER: provider},
        }
    )


def read_events(output: shapes.Output) -> shapes.Observation:
    seen = tuple(reading.events(output.stdout))
    parts = [(reading.text(one.get("type")), reading.inner(one, "part")) for one in seen]
    said = [reading.text(part.get("text")) for kind, part in parts if kind == "text"]
    steps = [part for kind, part in parts if kind == "step_finish"]
    calls = [part for kind, part in parts if kind == "tool_use"]
    costs = [price for step in steps if (price := reading.money(step.get("cost"))) is not None]
    return shapes.Observation(
        record=record_in(said[-1]) if said else None,
        commands_run=tuple(_command(part) for part in calls if part.get("tool") == "bash"),
        tokens_in=sum(_tokens_in(reading.inner(step, "tokens")) for step in steps),
        tokens_out=sum(_tokens_out(reading.inner(step, "tokens")) for step in steps),
        requests_made=len(steps),
        cost_usd=sum(costs[1:], start=costs[0]) if costs else None,
        transcript=tuple(
            _line(kind, part) for kind, part in parts if kind in {"text", "tool_use"}
        ),
        error=_error(seen, steps, output),
    )


def _error(
    seen: tuple[reading.Event, ...], steps: list[reading.Event], output: shapes.Output
) -> str | None:
    told = [reading.inner(one, "error") for one in seen if one.get("type") == "error"]
    finished = bool(steps) and steps[-1].get("reason") == "stop"
    if output.exit_code == 0 and finished and not told:
        return None
    logged = _LOGGED.findall(output.stderr)
    said = [
        reading.text(reading.inner(one, "data").get("message")) or reading.text(one.get("name"))
        for one in told
    ] or logged
    return reading.reason(said[-1] if said else "", output, "opencode")


def _tokens_in(tokens: reading.Event) -> int:
    cache = reading.inner(tokens, "cache")
    return sum(
        reading.count(one)
        for one in (tokens.get("input"), cache.get("read"), cache.get("write"))
    )


def _tokens_out(tokens: reading.Event) -> int:
    return reading.count(tokens.get("output")) + reading.count(tokens.get("reasoning"))


def _command(part: reading.Event) -> shapes.CommandRun:
    command = reading.text(reading.inner(part, "state", "input").get("command"))
    return shapes.CommandRun(
        command, reading.code(reading.inner(part, "state", "metadata").get("exit"))
    )


def _line(kind: str, part: reading.Event) -> str:
    if kind == "text":
        return f"said {reading.text(part.get('text'))}"
    given = json.dumps(dict(reading.inner(part, "state", "input")), ensure_ascii=False)
    return f"{reading.text(part.get('tool'))} {reading.text(given)}"


OPENCODE: Final = shapes.Preset("opencode", "opencode", invocation, read_events)
