"""Claude Code: `claude -p`, one JSON object a line, a record by schema.

Root may not skip its permissions, so the tools are named one by one; they are no scope.
"""

import json
import re
from decimal import Decimal
from typing import Final

from agent_run.executors.presets import reading, shapes
from agent_run.executors.presets.prompt import prompt
from agent_run.executors.presets.record import SCHEMA_TEXT

VENDOR: Final = "https://api.anthropic.com"
TOOLS: Final = "Bash,Edit,Glob,Grep,NotebookEdit,Read,Write"
RETRIES: Final = 4
COMMAND_MS: Final = 600_000
_LOGIN: Final = "CLAUDE_CODE_OAUTH_TOKEN"
_OWN_WORDS: Final = "<synthetic>"
_FAILED: Final = re.compile(r"Exit code (\d{1,3})\b")


def invocation(assignment: shapes.Assignment) -> shapes.Invocation:
    endpoint, home = assignment.endpoint, assignment.home
    key = endpoint.api_key_env or ("ANTHROPIC_API_KEY" if endpoint.base_url is None else None)
    inside = _LOGIN if key == _LOGIN else "ANTHROPIC_API_KEY"
    env = {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(RETRIES),
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
        "BASH_DEFAULT_TIMEOUT_MS": str(COMMAND_MS),
        "BASH_MAX_TIMEOUT_MS": str(COMMAND_MS),
    }
    if endpoint.base_url is not None:
        env["ANTHROPIC_BASE_URL"] = endpoint.base_url.rstrip("/").removesuffix("/v1")
        if endpoint.model is not None:
            env["ANTHROPIC_DEFAULT_HAIKU_MODEL"] = endpoint.model
    if key is None:
        env[inside] = "none"
    return shapes.Invocation(
        argv=(*assignment.program.argv, *_flags(assignment), "--", prompt(assignment)),
        cwd=assignment.workspace,
        env=env,
        secrets={} if key is None else {inside: key},
        folders=(home / ".claude", home / "tmp"),
        readable=assignment.program.readable,
        hosts=endpoint.hosts(VENDOR),
    )


def _flags(assignment: shapes.Assignment) -> tuple[str, ...]:
    model = assignment.endpoint.model
    return (
        "-p",
        *("--output-format", "stream-json", "--verbose"),
        *("--json-schema", SCHEMA_TEXT),
        *("--permission-mode", "acceptEdits"),
        *("--tools", TOOLS),
        *("--allowedTools", TOOLS),
        *("--setting-sources", "user"),
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--no-session-persistence",
        *(("--model", model) if model is not None else ()),
    )


def read_events(output: shapes.Output) -> shapes.Observation:
    seen = tuple(reading.events(output.stdout))
    result = next(
        (one for one in reversed(seen) if one.get("type") == "result"), reading.NOTHING
    )
    started = next((one for one in seen if one.get("subtype") == "init"), reading.NOTHING)
    said = reading.inner(result, "structured_output")
    tokens_in, tokens_out = _tokens(result, seen)
    return shapes.Observation(
        record=said or None,
        commands_run=_commands(seen, result),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        requests_made=len(_answers(seen)),
        cost_usd=_cost(result),
        model=reading.text(started.get("model")) or None,
        transcript=tuple(_transcript(seen)),
        error=_error(result, seen, output),
    )


def _error(
    result: reading.Event, seen: tuple[reading.Event, ...], output: shapes.Output
) -> str | None:
    ended = output.exit_code == 0 and result.get("is_error") is False
    if ended and result.get("subtype") == "success":
        return None
    retries = sum(one.get("subtype") == "api_retry" for one in seen)
    waited = f"the model endpoint did not answer, {retries} retries" if retries else ""
    said = reading.text(result.get("result")) or reading.text(result.get("subtype")) or waited
    return reading.reason(said, output, "claude")


def _cost(result: reading.Event) -> Decimal | None:
    prices = [
        reading.inner(result, "modelUsage", name)
        for name in reading.inner(result, "modelUsage")
    ]
    # For a model it does not know it makes a price up, and says so only here.
    if any(one.get("costBasis") == "unknown" for one in prices):
        return None
    return reading.money(result.get("total_cost_usd"))


def _tokens(result: reading.Event, seen: tuple[reading.Event, ...]) -> tuple[int, int]:
    answers = [reading.inner(one, "usage") for one in _answers(seen)]
    usages = [reading.inner(result, "usage")] if result else answers
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    tokens_in = sum(reading.count(one.get(name)) for one in usages for name in names)
    return tokens_in, sum(reading.count(one.get("output_tokens")) for one in usages)


def _answers(seen: tuple[reading.Event, ...]) -> tuple[reading.Event, ...]:
    said = [reading.inner(one, "message") for one in seen if one.get("type") == "assistant"]
    # One answer is told in several events that share its name; its own errors come as answers.
    named = {str(one.get("id")): one for one in said if one.get("model") != _OWN_WORDS}
    return tuple(named.values())


def _parts(seen: tuple[reading.Event, ...], *kinds: str) -> tuple[reading.Event, ...]:
    messages = [reading.inner(one, "message") for one in seen]
    parts = [part for message in messages for part in reading.objects(message.get("content"))]
    return tuple(part for part in parts if part.get("type") in kinds)


def _commands(
    seen: tuple[reading.Event, ...], result: reading.Event
) -> tuple[shapes.CommandRun, ...]:
    denied = {
        str(one.get("tool_use_id")) for one in reading.objects(result.get("permission_denials"))
    }
    answers = {str(one.get("tool_use_id")): one for one in _parts(seen, "tool_result")}
    return tuple(
        shapes.CommandRun(
            reading.text(reading.inner(call, "input").get("command")),
            _exit_code(answers.get(str(call.get("id")), reading.NOTHING)),
        )
        for call in _parts(seen, "tool_use")
        if call.get("name") == "Bash" and str(call.get("id")) not in denied
    )


def _exit_code(answer: reading.Event) -> int | None:
    if not answer:
        return None
    if answer.get("is_error") is not True:
        return 0
    found = _FAILED.match(reading.text(answer.get("content")))
    return reading.code(int(found.group(1))) if found else None


def _transcript(seen: tuple[reading.Event, ...]) -> list[str]:
    lines = []
    for part in _parts(seen, "text", "tool_use"):
        if part.get("type") == "text":
            lines.append(f"said {reading.text(part.get('text'))}")
        else:
            given = json.dumps(part.get("input"), ensure_ascii=False)
            lines.append(f"{reading.text(part.get('name'))} {reading.text(given)}")
    return lines


CLAUDE: Final = shapes.Preset("claude", "claude", invocation, read_events)
