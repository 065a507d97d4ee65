"""The scripted model speaks its three dialects, plain and streamed."""

import http.client
import json
from collections.abc import Mapping

import pytest

from tests.support.model_server import (
    ByAttempt,
    Edit,
    Finish,
    ModelServer,
    Refuse,
    Scenario,
    Shell,
    Turns,
)

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
TOOLS: dict[str, list[dict[str, object]]] = {
    "chat": [{"type": "function", "function": {"name": "bash", "parameters": {}}}],
    "responses": [{"type": "function", "name": "exec_command", "parameters": {}}],
    "messages": [{"name": "Bash", "input_schema": {}}],
}
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
FORMATS: dict[str, dict[str, object]] = {
    "chat": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "r", "schema": SCHEMA},
        }
    },
    "responses": {"text": {"format": {"type": "json_schema", "name": "r", "schema": SCHEMA}}},
    "messages": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
}


def posted(server: ModelServer, path: str, body: Mapping[str, object]) -> tuple[int, str]:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    try:
        connection.request("POST", path, json.dumps(body))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def question(dialect: str, **more: object) -> dict[str, object]:
    said = [{"role": "user", "content": "Repair it."}]
    return {
        "model": "scripted",
        "input" if dialect == "responses" else "messages": said,
        **more,
    }


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", PATHS)
def test_a_text_is_said_in_every_dialect(dialect: str, *, stream: bool) -> None:
    with ModelServer(Turns.of(Finish("Hello there"))) as server:
        status, text = posted(server, PATHS[dialect], question(dialect, stream=stream))

    assert status == 200
    assert "Hello there" in text
    assert text.startswith(("data:", "event:")) is stream


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", PATHS)
def test_a_command_becomes_a_call_of_the_offered_tool(dialect: str, *, stream: bool) -> None:
    body = question(dialect, stream=stream, tools=TOOLS[dialect])

    with ModelServer(Turns.of(Shell("pytest -q"))) as server:
        _, text = posted(server, PATHS[dialect], body)

    assert "pytest -q" in text
    assert any(f'"name": "{name}"' in text for name in ("bash", "exec_command", "Bash"))


@pytest.mark.parametrize("dialect", PATHS)
def test_a_demanded_schema_is_answered_with_the_record(dialect: str) -> None:
    with ModelServer(Turns.of(Finish("words", {"ok": True}))) as server:
        _, text = posted(server, PATHS[dialect], question(dialect, **FORMATS[dialect]))

    assert server.asks[0].output_schema == SCHEMA
    assert json.dumps({"ok": True}) in text.replace('\\"', '"')
    assert "words" not in text


@pytest.mark.parametrize("dialect", PATHS)
def test_a_refusal_is_an_http_error(dialect: str) -> None:
    with ModelServer(Turns.of(Refuse(429, "slow down"))) as server:
        status, text = posted(server, PATHS[dialect], question(dialect))

    assert status == 429
    assert "slow down" in text


def test_a_repeated_question_gets_the_same_answer() -> None:
    with ModelServer(Turns.of(Finish("first"), Finish("second"))) as server:
        answers = [posted(server, PATHS["chat"], question("chat"))[1] for _ in range(2)]

    assert answers[0] == answers[1]
    assert "first" in answers[0]


@pytest.mark.parametrize(
    ("words", "attempt"), [("attempt 2", 2), ("AGENT_RUN_ATTEMPT=3", 2), ("nothing", 1)]
)
def test_each_attempt_has_its_own_script(words: str, attempt: int) -> None:
    scripts: dict[int, Scenario] = {n: Turns.of(Finish(f"try {n}")) for n in (1, 2)}
    body = {"model": "m", "messages": [{"role": "user", "content": words}]}

    with ModelServer(ByAttempt(scripts)) as server:
        _, text = posted(server, PATHS["chat"], body)

    assert f"try {attempt}" in text


def test_edits_become_text_where_no_tool_is_offered() -> None:
    said = [{"role": "system", "content": "Answer with SEARCH/REPLACE blocks."}]
    script = Turns.of(Edit("a.py", "old", "new"), Shell("pytest"), Finish("Done."))

    with ModelServer(script) as server:
        _, text = posted(server, PATHS["chat"], {"model": "m", "messages": said})

    content = json.loads(text)["choices"][0]["message"]["content"]
    assert content.startswith("a.py\n```\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE")
    assert content.endswith("Done.")


def test_a_call_nobody_foresaw_is_refused_and_written_down() -> None:
    with ModelServer(Turns.of(Finish())) as server:
        status, _ = posted(server, "/telemetry", {"event": "started"})

    assert status == 404
    assert server.strays == ("/telemetry",)
