"""Workers and specialists as documents: every fault before anything is spent."""

import pytest

from agent_run.contract.reading import load, read_document
from agent_run.contract.shapes import Orchestration, Routing
from agent_run.errors import InvalidDocument

JOIN = "synthesis: {task_id: join, objective: join it}\n"


def orchestration(text: str) -> Orchestration:
    return load(Orchestration, read_document(text, source="o.yaml"))


def routing(text: str) -> Routing:
    return load(Routing, read_document(text, source="r.yaml"))


def test_what_workers_have_in_common_needs_no_name_of_its_own() -> None:
    read = orchestration(
        JOIN + "decompose: {task_id: d, objective: split}\nworker: {executor: look}\n"
    )

    assert read.worker is not None
    assert (read.worker.executor, read.run_name) == ("look", "join")


def test_a_specialist_is_called_as_it_is_listed() -> None:
    read = routing("intent: x\nstart: a\nspecialists: {a: {objective: help}}\n")

    assert read.specialists["a"].task_id == "a"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JOIN, "has neither workers nor decompose"),
        (JOIN + "workers: [{task_id: join, objective: x}]\n", "two tasks called 'join'"),
        (JOIN + "workers: [{task_id: a, objective: x}]\nquorum: 0\n", "quorum"),
        (JOIN + "workers: [{task_id: a, objective: x}]\nquorums: 1\n", "quorums"),
    ],
)
def test_an_orchestration_that_cannot_hold_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidDocument, match=said):
        orchestration(text)


def test_a_start_that_is_nobody_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="starts with 'b', expected one of a"):
        routing("intent: x\nstart: b\nspecialists: {a: {objective: help}}\n")
