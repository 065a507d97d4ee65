"""mini-swe-agent: `mini -y --exit-immediately`, a shell and nothing else.

What it did is read from the trajectory that it writes at each step.
"""

import re
from collections.abc import Iterator
from typing import Final

from agent_run.executors.presets import reading, shapes
from agent_run.executors.presets.demands import address, chat_model, key_of
from agent_run.executors.presets.prompt import prompt, record_as_file
from agent_run.executors.presets.record import parsed, record_in

COMMAND_SECONDS: Final = 600
RETRIES: Final = 3
_RAISED: Final = re.compile(r"^\w*(?:Error|Exception): .*(?:\n\S.*)*", re.MULTILINE)


def invocation(assignment: shapes.Assignment) -> shapes.Invocation:
    endpoint, home = assignment.endpoint, assignment.home
    base_url, model = address(endpoint, "mini-swe-agent")
    trajectory, record = home / "trajectory.json", home / "record.json"
    env = {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_GLOBAL_CONFIG_DIR": str(home / ".mini"),
        "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": str(RETRIES),
        "MSWEA_SILENT_STARTUP": "1",
    }
    placeholder, secrets = key_of(endpoint, "OPENAI_API_KEY")
    settings = (
        "mini.yaml",
        "model.cost_tracking=ignore_errors",
        f"model.model_kwargs.api_base={base_url}",
        f"environment.timeout={COMMAND_SECONDS}",
    )
    flags = (
        *("-m", chat_model(model), "-y", "--exit-immediately", "-l", "0"),
        *("-o", str(trajectory)),
        *(word for setting in settings for word in ("-c", setting)),
    )
    # Joined by `=` because a brief may begin with a dash.
    task = f"--task={prompt(assignment, record_as_file(record))}"
    return shapes.Invocation(
        argv=(*assignment.program.argv, *flags, task),
        cwd=assignment.workspace,
        env={**env, **placeholder},
        secrets=secrets,
        folders=(home / "tmp", home / ".mini"),
        results={"trajectory": trajectory, "record": record},
        readable=assignment.program.readable,
        hosts=endpoint.hosts(base_url),
    )


def read_events(output: shapes.Output) -> shapes.Observation:
    trajectory = parsed(output.files.get("trajectory", ""))
    whole = trajectory if isinstance(trajectory, dict) else reading.NOTHING
    messages = reading.objects(whole.get("messages"))
    info = reading.inner(whole, "info")
    answers = [reading.inner(one, "extra", "response") for one in messages if _is_answer(one)]
    ended = reading.inner(messages[-1], "extra") if messages else reading.NOTHING
    submission = reading.text(ended.get("submission"))
    usages = [reading.inner(one, "usage") for one in answers]
    return shapes.Observation(
        record=record_in(output.files.get("record", "")) or record_in(submission),
        commands_run=tuple(_commands(messages)),
        tokens_in=sum(reading.count(one.get("prompt_tokens")) for one in usages),
        tokens_out=sum(reading.count(one.get("completion_tokens")) for one in usages),
        requests_made=reading.count(reading.inner(info, "model_stats").get("api_calls")),
        cost_usd=reading.money(reading.inner(info, "model_stats").get("instance_cost")),
        model=reading.text(answers[-1].get("model")) or None if answers else None,
        transcript=tuple(_line(one) for one in messages[2:]),
        error=_error(ended, output),
    )


def _error(ended: reading.Event, output: shapes.Output) -> str | None:
    status = reading.text(ended.get("exit_status"))
    if output.exit_code == 0 and status == "Submitted":
        return None
    raised = _RAISED.findall(output.stdout) or _RAISED.findall(output.stderr)
    return reading.reason(raised[-1] if raised else status, output, "mini-swe-agent")


def _is_answer(message: reading.Event) -> bool:
    return message.get("role") == "assistant"


def _commands(messages: tuple[reading.Event, ...]) -> Iterator[shapes.CommandRun]:
    results = {str(one.get("tool_call_id")): reading.inner(one, "extra") for one in messages}
    for message in messages:
        for action in reading.objects(reading.inner(message, "extra").get("actions")):
            result = results.get(str(action.get("tool_call_id")), reading.NOTHING)
            exit_code = reading.code(result.get("returncode"))
            # A negative code is its own, for a command that was never seen to end.
            known = exit_code if exit_code is not None and exit_code >= 0 else None
            yield shapes.CommandRun(reading.text(action.get("command")), known)


def _line(message: reading.Event) -> str:
    commands = [
        reading.text(one.get("command"))
        for one in reading.objects(reading.inner(message, "extra").get("actions"))
    ]
    said = reading.text(message.get("content"))
    return " ".join(
        part for part in (reading.text(message.get("role")), said, *commands) if part
    )


MINI_SWE_AGENT: Final = shapes.Preset("mini-swe-agent", "mini", invocation, read_events)
