"""Real providers' libraries, over a real connection, in the three dialects."""

import socket
from functools import partial
from pathlib import Path

import anyio
import pytest

from agent_run.contract.budget import Budget
from agent_run.errors import AnswerUnusable, ModelRefused, ModelUnreachable
from agent_run.models import BytesMeter, MemoryPurse, ModelOptions, Terms, open_model, paid
from agent_run.ports.model import ModelRequest, Observation, Prompt, ToolOffer
from tests.models.wire import DIALECTS, cut, model_at, question, said, wire
from tests.support.model_server import Finish, ModelServer, Refuse, Turns
from tests.support.model_server.toolbox import Call, Say

SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
LOOK = ToolOffer(
    name="look",
    description="Look at a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
)
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def name_at(server: ModelServer, dialect: str) -> str:
    return {
        "chat": f"openai-chat:m@{server.v1}",
        "responses": f"openai:m@{server.v1}",
        "messages": f"anthropic:claude-haiku-4-5@{server.url}",
    }[dialect]


@every_dialect
def test_a_structured_answer_arrives_as_data(dialect: str) -> None:
    with ModelServer(Turns.of(Finish("words", {"ok": True}))) as server:
        model = open_model(name_at(server, dialect), ModelOptions(api_key="k"))
        answer = anyio.run(model.ask, question(output_schema=SCHEMA, instructions="Be good."))

    assert (answer.output, answer.faults, answer.ended) == ({"ok": True}, (), "stop")
    assert (answer.usage.tokens_in, answer.usage.tokens_out) == (100, 10)
    assert server.asks[0].system.strip() == "Be good."
    assert server.asks[0].output_schema == SCHEMA


@every_dialect
def test_a_model_at_an_own_address_has_no_price_unless_one_is_given(dialect: str) -> None:
    with ModelServer(Turns.of(Finish("words"))) as server:
        answer = anyio.run(open_model(name_at(server, dialect)).ask, question())

    assert answer.cost_usd is None
    assert answer.spend.unpriced_requests == 1


@every_dialect
def test_a_tool_is_called_and_its_result_goes_back(dialect: str) -> None:
    def script(ask: object, body: object, results: list[tuple[str, ...]]) -> object:
        results.append(ask.results)  # type: ignore[attr-defined]  # an Ask
        reply = Say("It says 42.") if len(results) > 1 else Call("look", {"path": "a.txt"})
        return 200, said(ask, reply)  # type: ignore[arg-type]  # an Ask

    results: list[tuple[str, ...]] = []
    with wire(partial(script, results=results)) as server:  # type: ignore[arg-type]  # as said
        model = model_at(server, dialect)
        first = anyio.run(model.ask, question(tools=(LOOK,)))
        call = first.calls[0]
        seen = Observation(call_id=call.call_id, name=call.name, text="42")
        more = ModelRequest(
            messages=(Prompt(text="hello"), first.as_reply(), seen), tools=(LOOK,)
        )
        second = anyio.run(model.ask, more)

    assert (call.name, call.arguments, first.ended) == ("look", {"path": "a.txt"}, "tools")
    assert second.text == "It says 42."
    assert results == [(), ("42",)]


@every_dialect
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_once_per_try(dialect: str, status: int) -> None:
    with ModelServer(Turns.of(Refuse(status))) as server:
        model = open_model(name_at(server, dialect))
        with pytest.raises(ModelUnreachable) as caught:
            anyio.run(model.ask, question())

    assert not caught.value.may_have_cost
    assert len(server.asks) == 1


@every_dialect
@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refused_request_is_not_tried_again(dialect: str, status: int) -> None:
    with ModelServer(Turns.of(Refuse(status, "no such thing"))) as server:
        model = paid(open_model(name_at(server, dialect)), MemoryPurse(), BytesMeter())
        with pytest.raises(ModelRefused, match="no such thing"):
            anyio.run(model.ask, question())

    assert len(server.asks) == 1


@every_dialect
def test_retries_are_counted_told_and_paid_for(dialect: str) -> None:
    told: list[str] = []
    purse = MemoryPurse(Budget(max_requests=3))
    terms = Terms(retries=2, pause_sec=0, tell=lambda _topic, text: told.append(text))
    with ModelServer(Turns.of(Refuse(500, "out of order"))) as server:
        model = paid(open_model(name_at(server, dialect)), purse, BytesMeter(), terms)
        with pytest.raises(ModelUnreachable, match="out of order"):
            anyio.run(model.ask, question())

    assert len(server.asks) == 3
    assert len(told) == 2
    assert (purse.spent.requests, purse.spent.tokens) == (3, 0)


@every_dialect
def test_a_dead_endpoint_costs_nothing(dialect: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nobody answers here
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        names = {"chat": "openai-chat:m", "responses": "openai:m", "messages": "anthropic:m"}
        model = open_model(f"{names[dialect]}@{address}/v1")
        with pytest.raises(ModelUnreachable, match="cannot be reached") as caught:
            anyio.run(model.ask, question())

    assert not caught.value.may_have_cost


@every_dialect
def test_a_connection_that_breaks_off_may_have_cost_something(dialect: str) -> None:
    purse = MemoryPurse()
    with wire(lambda _ask, _body: (200, None)) as server:
        model = paid(model_at(server, dialect), purse, BytesMeter(), Terms(retries=0))
        with pytest.raises(ModelUnreachable) as caught:
            anyio.run(model.ask, question(max_output_tokens=50))

    assert caught.value.may_have_cost
    assert purse.spent.tokens > 50


@every_dialect
@pytest.mark.parametrize("body", [b"{ not json", b'{"strange": true}', b"[]", b""])
def test_what_is_no_answer_is_never_taken_for_one(dialect: str, body: bytes) -> None:
    with wire(lambda _ask, _body: (200, body)) as server:
        model = model_at(server, dialect)
        with pytest.raises((ModelUnreachable, AnswerUnusable)):
            anyio.run(model.ask, question())


@every_dialect
def test_words_that_are_no_json_are_named_as_faults(dialect: str) -> None:
    with wire(lambda ask, _body: (200, said(ask, Say('{"ok": tru')))) as server:
        answer = anyio.run(model_at(server, dialect).ask, question(output_schema=SCHEMA))

    assert answer.output is None
    assert answer.faults


@every_dialect
def test_data_that_breaks_the_schema_is_named_as_faults(dialect: str) -> None:
    with wire(lambda ask, _body: (200, said(ask, Say('{"ok": "yes"}')))) as server:
        answer = anyio.run(model_at(server, dialect).ask, question(output_schema=SCHEMA))

    assert answer.output is None
    assert "boolean" in answer.faults[0]


@pytest.mark.parametrize("raw", ['{"path": ', "[1]", '"a.txt"'])
def test_arguments_that_cannot_be_read_are_a_fault_of_the_call(raw: str) -> None:
    def broken(ask: object, _body: object) -> object:
        body = said(ask, Call("look", {}))  # type: ignore[arg-type]  # an Ask
        body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = raw
        return 200, body

    with wire(broken) as server:  # type: ignore[arg-type]  # as said
        answer = anyio.run(model_at(server, "chat").ask, question(tools=(LOOK,)))

    assert answer.calls[0].fault
    assert answer.calls[0].arguments == {}


@every_dialect
def test_an_answer_that_was_cut_is_refused_and_paid_for(dialect: str, tmp_path: Path) -> None:
    purse = MemoryPurse(file=tmp_path / "purse")
    with wire(lambda ask, _body: (200, cut(ask, '{"ok": true}'))) as server:
        model = paid(model_at(server, dialect), purse, BytesMeter())
        asked = question(output_schema=SCHEMA, max_output_tokens=16)
        with pytest.raises(AnswerUnusable, match="limit of 16 output tokens"):
            anyio.run(model.ask, asked)
        with pytest.raises(AnswerUnusable, match="limit of 16 output tokens"):
            anyio.run(model.ask, asked)

    assert len(server.bodies) == 1  # the second time it was read back, not bought again
    assert purse.spent.tokens == 110
