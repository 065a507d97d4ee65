"""What presets read out of event streams that were recorded from the real command lines."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from agent_run.executors.presets import PRESETS, CommandRun, Observation, Output
from agent_run.executors.presets.codex import unwrapped

STREAMS = Path(__file__).parent / "streams"
HOSTILE_NAMES = ("a\u202eb", "\x1b[2Jgone", "half \ud800 pair", "nul \x00 inside")


def recorded(name: str) -> str:
    return (STREAMS / name).read_text()


def seen(preset: str, stdout: str, exit_code: int | None = 0, **files: str) -> Observation:
    return PRESETS[preset].read_events(Output(stdout, "", exit_code, files))


def lines(*events: object) -> str:
    return "\n".join(json.dumps(event) for event in events)


@pytest.mark.parametrize(
    ("preset", "observation"),
    [
        ("claude", seen("claude", recorded("claude.jsonl"))),
        ("codex", seen("codex", recorded("codex.jsonl"))),
        ("opencode", seen("opencode", recorded("opencode.jsonl"))),
        (
            "mini-swe-agent",
            seen("mini-swe-agent", "", trajectory=recorded("mini-swe-agent.json")),
        ),
    ],
)
def test_record_commands_and_tokens_are_read(preset: str, observation: Observation) -> None:
    assert observation.error is None
    assert observation.record is not None
    assert observation.record["status"] == "needs_review"
    assert observation.record["confidence_percent"] == 90
    assert CommandRun("cat calc.py", 0) in observation.commands_run
    assert observation.tokens_in in {300, 400}
    assert observation.tokens_out in {30, 40}
    assert observation.transcript


def test_aider_gives_tokens_and_a_transcript_but_no_record() -> None:
    observation = seen("aider", recorded("aider.txt"))

    assert observation.error is None
    assert observation.record is None
    assert (observation.tokens_in, observation.tokens_out) == (100, 10)
    assert observation.model == "openai/scripted"
    assert "Applied edit to calc.py" in observation.transcript


@pytest.mark.parametrize(
    ("preset", "output", "words"),
    [
        ("claude", Output(recorded("claude-dead.jsonl"), "", 1), "ECONNREFUSED"),
        (
            "claude",
            Output("\n".join(recorded("claude-dead.jsonl").splitlines()[:3]), "", None),
            "was stopped before it finished: the model endpoint did not answer, 2 retries",
        ),
        ("codex", Output(recorded("codex-dead.jsonl"), "", 1), "Connection failed"),
        ("codex", Output(recorded("codex-dead.jsonl"), "", None), "was stopped"),
        ("opencode", Output("", recorded("opencode-dead.log"), None), "Cannot connect to API"),
        ("aider", Output(recorded("aider-dead.txt"), "", 0), "OpenAIException - Connection"),
        (
            "mini-swe-agent",
            Output(
                "",
                recorded("mini-swe-agent-dead.txt"),
                1,
                {"trajectory": recorded("mini-swe-agent-dead.json")},
            ),
            "Connection error",
        ),
    ],
)
def test_a_dead_endpoint_is_an_error_that_says_so(
    preset: str, output: Output, words: str
) -> None:
    observation = PRESETS[preset].read_events(output)

    assert observation.error is not None
    assert words in observation.error
    assert observation.record is None


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    "stdout",
    [
        "",
        "\n\n",
        "{" * 100_000,
        "[" * 100_000,
        '{"type": "result", "usage": ' + "[" * 5_000 + "]" * 5_000 + "}",
        '{"type": NaN}',
        "9" * 5_000,
        lines(None, 1, "x", [], {}),
        lines({"type": ["result"]}, {"type": {}, "item": [], "part": 3, "message": "no"}),
        lines({"type": "item.completed", "item": {"type": "agent_message", "text": ["no"]}}),
        lines({"type": "result", "usage": "x", "modelUsage": {"m": 1}, "structured_output": 7}),
        "Tokens: ... sent, ,, received.",
        "Tokens: 1.2.3k sent, .k received.",
    ],
)
def test_nonsense_is_an_unfinished_run_and_never_a_crash(preset: str, stdout: str) -> None:
    observation = seen(preset, stdout, exit_code=3, trajectory=stdout, record=stdout)

    assert observation.error is not None
    assert observation.record is None
    assert observation.tokens_in == 0
    assert observation.cost_usd is None


@pytest.mark.parametrize("preset", PRESETS)
def test_an_exit_code_of_0_alone_is_no_finished_run(preset: str) -> None:
    assert seen(preset, "All done.", exit_code=0).error is not None


@pytest.mark.parametrize("number", [-1, 10**30, 1.5, True, "12", None, [3]])
def test_unbelievable_counts_and_prices_do_not_count(number: object) -> None:
    usage = {"input_tokens": number, "output_tokens": number}
    result = {"type": "result", "subtype": "success", "is_error": False}
    price = number if not isinstance(number, float) else float("1e300")
    stdout = lines({**result, "usage": usage, "total_cost_usd": price})

    observation = seen("claude", stdout)

    assert (observation.tokens_in, observation.tokens_out) == (0, 0)
    assert observation.cost_usd is None


def test_a_price_that_claude_made_up_is_unknown() -> None:
    priced = {"type": "result", "total_cost_usd": 0.25, "modelUsage": {"m": {"costUSD": 0.25}}}
    guessed = {**priced, "modelUsage": {"m": {"costUSD": 0.25, "costBasis": "unknown"}}}

    assert seen("claude", lines(priced)).cost_usd == Decimal("0.25")
    assert seen("claude", lines(guessed)).cost_usd is None


def test_aider_counts_in_thousands_and_adds_its_messages_up() -> None:
    stdout = (
        "Tokens: 1.5k sent, 250 cache hit, 2k received. Cost: $0.01 message, $0.01 session.\n"
        "Tokens: 1,024 sent, 10 received. Cost: $0.02 message, $0.03 session.\n"
    )

    observation = seen("aider", stdout)

    assert (observation.tokens_in, observation.tokens_out) == (2_524, 2_010)
    assert observation.cost_usd == Decimal("0.03")
    assert observation.requests_made == 2


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_text_of_agents_cannot_steer_a_terminal_or_break_a_store(name: str) -> None:
    call = {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": f"echo {name}"}}
    said = {"type": "text", "text": name}
    stdout = json.dumps({"type": "assistant", "message": {"id": "m", "content": [call, said]}})

    observation = seen("claude", stdout.replace("\\u202e", "\u202e"), exit_code=1)
    shown = " ".join([*observation.transcript, observation.error or ""])

    shown.encode()
    assert not set(shown) & set("\x00\x1b\u202e")
    assert not any(set(run.command) & set("\x00\x1b\u202e") for run in observation.commands_run)


def test_a_denied_command_was_not_run() -> None:
    def call(name: str) -> dict[str, object]:
        given = {"command": f"run {name}"}
        return {"type": "tool_use", "id": name, "name": "Bash", "input": given}

    answer = {"type": "tool_result", "tool_use_id": "b", "is_error": True}
    stdout = lines(
        {"type": "assistant", "message": {"id": "1", "content": [call("a"), call("b")]}},
        {"type": "user", "message": {"content": [{**answer, "content": "Exit code 2\nno"}]}},
        {"type": "result", "permission_denials": [{"tool_use_id": "a"}, {"tool_use_id": []}]},
    )

    assert seen("claude", stdout).commands_run == (CommandRun("run b", 2),)


def test_a_command_still_running_at_the_end_is_seen_without_an_exit_code() -> None:
    item = {"id": "1", "type": "command_execution", "command": "sleep 9", "exit_code": None}

    observation = seen("codex", lines({"type": "item.started", "item": item}), exit_code=None)

    assert observation.commands_run == (CommandRun("sleep 9", None),)


@pytest.mark.parametrize(
    ("command", "inside"),
    [
        ("/bin/bash -lc 'pytest -q'", "pytest -q"),
        ("""/bin/sh -c "echo 'a b'" """.strip(), "echo 'a b'"),
        ("pytest -q", "pytest -q"),
        ("python -c 'print(1)'", "python -c 'print(1)'"),
        ("/bin/bash -lc 'never closed", "/bin/bash -lc 'never closed"),
    ],
)
def test_codex_commands_are_shown_without_the_shell_around_them(
    command: str, inside: str
) -> None:
    assert unwrapped(command) == inside


def test_the_record_file_of_mini_swe_agent_wins_over_its_submission() -> None:
    trajectory = recorded("mini-swe-agent.json")

    observation = seen("mini-swe-agent", "", trajectory=trajectory, record='{"status": "done"}')

    assert observation.record == {"status": "done"}


def test_a_very_long_complaint_is_shortened_and_says_so() -> None:
    observation = PRESETS["codex"].read_events(Output("", "x" * 50_000, 1))

    assert observation.error is not None
    assert len(observation.error) < 3_000
    assert observation.error.endswith("... (50000 characters)")
