"""Names of models, what loading them costs, what they count and what they are worth."""

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from agent_run.errors import AnswerUnusable, ContractError, InvalidDocument, ModelMissing
from agent_run.models import (
    BytesMeter,
    ModelOptions,
    Price,
    ScriptedModel,
    Turn,
    ask_for,
    open_meter,
    open_model,
)
from agent_run.models.names import parse_model
from agent_run.models.weighing import at_most
from agent_run.ports.model import ModelRequest, Prompt, Usage

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def asks(**more: object) -> ModelRequest:
    return ModelRequest.model_validate({"messages": [Prompt(text="How many?")], **more})


def test_importing_the_room_loads_no_provider() -> None:
    code = (
        "import sys, agent_run.models, agent_run.executors.agent, agent_run.executors.planner;"
        "heavy = {'pydantic_ai', 'genai_prices', 'splintr', 'openai', 'anthropic', 'httpx'};"
        "print(heavy & set(sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    assert (done.stdout, done.stderr) == (b"set()\n", b"")


@pytest.mark.parametrize(
    ("text", "provider", "model", "base_url"),
    [
        ("anthropic:claude-haiku-5-5", "anthropic", "claude-haiku-5-5", None),
        ("openai:gpt-5", "openai", "gpt-5", None),
        ("openai-chat:m@http://127.0.0.1:80/v1", "openai-chat", "m", "http://127.0.0.1:80/v1"),
        ("openai-chat:a/b:c@https://x.org/v1/", "openai-chat", "a/b:c", "https://x.org/v1"),
        ("openai-chat:me@home", "openai-chat", "me@home", None),
        ("test", "test", "", None),
    ],
)
def test_a_name_says_provider_model_and_address(
    text: str, provider: str, model: str, base_url: str | None
) -> None:
    name = parse_model(text)

    assert (name.provider, name.model, name.base_url) == (provider, model, base_url)


@pytest.mark.parametrize(
    "text", ["", "gpt-5", "google:x", "openai:", "openai-chat:@http://x/v1", "openai:m@http://"]
)
def test_what_is_no_name_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ContractError, match="expected"):
        open_model(text, ModelOptions(api_key="k"))


@pytest.mark.parametrize("text", ["anthropic:claude-haiku-5-5", "openai:gpt-5"])
def test_a_provider_without_a_key_is_refused_before_anything_is_sent(text: str) -> None:
    with pytest.raises(ModelMissing, match="API key"):
        open_model(text)


def test_a_key_is_not_shown() -> None:
    model = open_model("openai:gpt-5", ModelOptions(api_key="sk-secret"))

    assert "sk-secret" not in repr(ModelOptions(api_key="sk-secret"))
    assert "sk-secret" not in repr(model)


def test_a_listed_price_is_used_and_an_unknown_one_stays_unknown() -> None:
    options, usage = ModelOptions(api_key="k"), Usage(tokens_in=1_000_000, tokens_out=1_000_000)

    listed = open_model("anthropic:claude-haiku-4-5", options).price(usage)
    unlisted = open_model("anthropic:claude-nobody-knows", options).price(usage)
    own = ModelOptions(api_key="k", price=Price(Decimal(3), Decimal(4)))

    assert listed == Decimal(6)
    assert unlisted is None
    assert open_model("openai:whatever", own).price(usage) == Decimal(7)


def test_the_meter_counts_as_the_models_of_openai_do() -> None:
    meter = open_meter()

    assert meter.name == "o200k"
    assert meter.count("hello world") == 2
    assert meter.count("<|endoftext|>") > 1  # a name of a special token is plain text
    assert meter.count("") == 0


@pytest.mark.parametrize(
    "text", ["hello world", "žluťoučký kůň", "日本語", "🙂" * 10, "\ud800"]
)
def test_bytes_are_never_fewer_than_tokens(text: str) -> None:
    exact = open_meter().count(text.encode("utf-8", "replace").decode())

    assert BytesMeter().count(text) >= exact


def test_more_is_set_aside_for_a_model_that_counts_otherwise() -> None:
    request, meter = asks(max_output_tokens=100), BytesMeter()
    model = ScriptedModel([Turn(text="x")])

    own, other = (at_most(request, model, meter, factor) for factor in (1.1, 2.0))

    assert own.tokens < other.tokens
    assert own.tokens > 100 + len("How many?")


def test_the_test_model_answers_with_data_that_fits() -> None:
    answer = anyio.run(open_model("test").ask, asks(output_schema=SCHEMA))

    assert answer.output == {"n": 0}
    assert answer.cost_usd == 0


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    script = tmp_path / "turns.yaml"
    script.write_text("- text: one\n- output: {n: 2}\n")

    model = open_model(f"scripted:{script}")

    assert anyio.run(model.ask, asks()).text == "one"


@pytest.mark.parametrize("content", ["", "[]", "- {tekst: one}", "hello: world", None])
def test_a_file_that_is_no_script_is_refused(content: str | None, tmp_path: Path) -> None:
    script = tmp_path / "turns.yaml"
    if content is not None:
        script.write_text(content)

    with pytest.raises(ContractError, match="script"):
        open_model(f"scripted:{script}")


def even(value: object) -> int:
    number = value["n"] if isinstance(value, dict) else None
    if not isinstance(number, int) or number % 2:
        msg = f"n is {number!r}, expected an even number"
        raise InvalidDocument(msg)
    return number


async def typed(model: ScriptedModel, tries: int) -> int:
    return (await ask_for(model, asks(output_schema=SCHEMA), even, tries=tries)).value


def test_what_is_wrong_with_an_answer_is_said_back() -> None:
    turns = [Turn(text="four"), Turn(output={"n": "4"}), Turn(output={"n": 3})]
    model = ScriptedModel([*turns, Turn(output={"n": 4})])

    value = anyio.run(typed, model, 4)

    said = [str(request.messages[-1]) for request in model.asked]
    assert value == 4
    assert "JSON" in said[1]
    assert "integer" in said[2]
    assert "n is 3, expected an even number" in said[3]
    assert [request.step for request in model.asked] == ["ask.1", "ask.2", "ask.3", "ask.4"]


def test_patience_with_a_model_has_an_end() -> None:
    model = ScriptedModel([Turn(output={"n": 3})])

    with pytest.raises(AnswerUnusable, match=r"in 2 tries: n is 3"):
        anyio.run(typed, model, 2)

    assert len(model.asked) == 2
