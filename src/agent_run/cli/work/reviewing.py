"""The work of `review`: look at what waits for a person, and decide."""

import json
from collections.abc import Iterable, Iterator
from typing import Final, TypedDict, Unpack

import click
from pydantic import JsonValue, TypeAdapter, ValidationError

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.ending import Ending, ending_of
from agent_run.cli.work.exhibits import exhibit
from agent_run.cli.work.judgements import judged_json, judgements
from agent_run.cli.work.listening import completed
from agent_run.cli.work.one_key import can_ask, decision_by_key
from agent_run.cli.work.recipes import (
    after_decision,
    checks_a_draft,
    refuse_question,
    settle_rejection,
)
from agent_run.cli.work.showing import lines_of
from agent_run.contract.base import RunId, TaskId
from agent_run.contract.manifest import Paths
from agent_run.contract.paths import fault_of
from agent_run.contract.payload import payload_faults
from agent_run.contract.verdict import PERSON_GATE, Finding, Verdict
from agent_run.engine.judge import approve, let_go
from agent_run.errors import ContractError
from agent_run.ledger.commands import Answer, Approve, Command, Decide, Widen
from agent_run.ledger.inbox import inbox_row, item_json
from agent_run.ledger.state import SETTLED, Status, TaskState
from agent_run.ledger.words import against, named, widening
from agent_run.wiring.opening import wall_clock
from agent_run.wiring.site import open_site

_DECISIONS: Final = ("approve", "reject", "ask", "answer", "widen")
_EXPECTED: Final = {
    "reject": "a reason, for whoever works on it next",
    "ask": "a question, for whoever works on it next",
    "answer": "an answer",
}
_TAIL: Final = 20
_DIFF: Final = 200
_PATHS: Final = TypeAdapter[tuple[str, ...]](Paths)


class Wish(TypedDict):
    """What the person decided, if anything."""

    approve: bool
    reject: str | None
    ask: str | None
    answer: str | None
    widen: tuple[str, ...]
    again: bool
    because: str | None
    owner: str | None
    dry_run: bool


def review(speech: Speech, *, task: str, **wish: Unpack[Wish]) -> int:
    """Show the work, or write down what the person decided.

    At a terminal, whoever looks at the work can decide with one key.
    """
    decision = _decision(wish)
    if decision is None:
        with opened(speech) as door:
            run_id, task_id = door.desk.locate(task)
            _show(door, run_id, task_id)
            waiting = door.desk.run(run_id).tasks[task_id]
        pressed = decision_by_key(waiting) if can_ask(speech) else None
        if pressed is None:
            return Exit.DONE
        decision, value = pressed
        task = f"{run_id}/{task_id}"
        wish[decision] = value  # type: ignore[literal-required]  # one of the options
    return _written_down(speech, task, decision, wish)


def _decision(wish: Wish) -> str | None:
    decisions = [name for name in _DECISIONS if _said(wish, name)]
    _refuse_empty(wish, decisions)
    if len(decisions) > 1:
        msg = f"one decision at a time, got --{' and --'.join(decisions)}"
        raise click.UsageError(msg, click.get_current_context())
    if wish["again"] and decisions != ["reject"]:
        msg = "--again goes with --reject"
        raise click.UsageError(msg, click.get_current_context())
    if wish["because"] is not None and decisions != ["approve"]:
        msg = "--because goes with --approve"
        raise click.UsageError(msg, click.get_current_context())
    return decisions[0] if decisions else None


def _refuse_empty(wish: Wish, decisions: Iterable[str]) -> None:
    for name in decisions:
        value = wish[name]  # type: ignore[literal-required]  # a name of the list above
        if isinstance(value, str) and not value.strip():
            msg = f"--{name} is empty, expected {_EXPECTED[name]}"
            raise click.UsageError(msg, click.get_current_context())


def _written_down(speech: Speech, task: str, decision: str, wish: Wish) -> int:
    with opened(speech, writes=True, dry_run=wish["dry_run"]) as door:
        run_id, task_id = door.desk.locate(task)
        actor = wish["owner"] or door.settings.owner
        before = door.desk.run(run_id).tasks[task_id]
        refuse_question(before, "again" if wish["again"] else decision)
        _decide(door, run_id, before, _command(before, wish, actor))
        if decision == "reject" and not door.dry_run:
            settle_rejection(door, run_id, task_id)
        ending = ending_of(door.desk, run_id, task_id)
        following = after_decision(run_id, door.desk.run(run_id))
    now = ending.task
    told: Json = {
        **ending.as_json(),
        "decision": decision,
        "by": actor,
        "dry_run": door.dry_run,
        "next": [following] if following else [],
    }
    line = f"[review]  task={task_id} {decision} by {actor}"
    speech.answer(told, [line if door.dry_run else f"{line} -> {now.status}"])
    if now.status is Status.ACCEPTED and now.result and not door.dry_run:
        speech.tell(ending.sentence())
    if following and not door.dry_run:
        speech.tell(f"next, for what follows from it: {following}")
    return Exit.DONE


def _said(wish: Wish, name: str) -> bool:
    value = wish[name]  # type: ignore[literal-required]  # a name of the list above
    return value is not None and value is not False and value != ()


def _command(task: TaskState, wish: Wish, actor: str) -> Command:
    task_id, because = task.manifest.task_id, wish["because"] or ""
    if wish["approve"]:
        if task.status is Status.WAITING:
            return Approve(task_id=task_id, actor=actor, note=because)
        return Decide(task_id=task_id, actor=actor, verdict=_approval(task, actor, because))
    if wish["answer"] is not None:
        return Answer(task_id=task_id, actor=actor, answer=_answer(task, wish["answer"]))
    if wish["widen"]:
        return Widen(task_id=task_id, actor=actor, paths=_paths(wish["widen"]))
    if wish["ask"] is not None:
        said = f"{actor} asks: {wish['ask']}"
        return Decide(task_id=task_id, actor=actor, verdict=_refusal(said), again=True)
    verdict = _refusal(wish["reject"] or "")
    return Decide(task_id=task_id, actor=actor, verdict=verdict, again=wish["again"])


def _decide(door: Door, run_id: RunId, task: TaskState, command: Command) -> None:
    if not isinstance(command, Decide) or door.dry_run:
        door.handle(run_id, command)
        return
    task_id, site = command.task_id, open_site(door.desk, door.settings)
    if command.verdict.passed:
        completed(
            lambda: approve(
                site, run_id, task_id, actor=command.actor, verdict=command.verdict
            ),
            door.speech,
        )
        return
    state = door.handle(run_id, command)
    let_go(site, run_id, state.tasks[task_id], task.claim)


def _approval(task: TaskState, actor: str, because: str) -> Verdict:
    """Return the person's verdict; what the gates held against the work is named in it."""
    earlier = task.verdict
    spite = against(earlier) if earlier else ""
    said = f"approved by {actor}" + (f": {because}" if because else "")
    said += f" in spite of: {spite}" if spite else ""
    passed = [one for one in earlier.findings if one.outcome == "pass"] if earlier else []
    finding = Finding(gate=PERSON_GATE, outcome="pass", reason="verified", evidence=said)
    return Verdict(findings=(*passed, finding), tree=earlier.tree if earlier else None)


def _refusal(said: str) -> Verdict:
    finding = Finding(gate=PERSON_GATE, outcome="fail", reason="review_rejected", evidence=said)
    return Verdict(findings=(finding,))


def _answer(task: TaskState, text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    schema = task.question.answer_schema if task.question else None
    faults = list(payload_faults(value, schema)) if schema is not None else []
    if faults:
        msg = "the answer is not what was asked for: " + "; ".join(map(str, faults))
        raise ContractError(msg)
    return value


def _paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    faults = [fault for fault in map(fault_of, paths) if fault]
    if faults:
        raise ContractError("; ".join(faults))
    try:
        return _PATHS.validate_python(paths)
    except ValidationError as error:
        msg = f"a path of {paths!r} is empty or too long"
        raise ContractError(msg) from error


def _show(door: Door, run_id: RunId, task_id: TaskId) -> None:
    ending = ending_of(door.desk, run_id, task_id)
    task = ending.task
    diff = exhibit(door.desk, task, "diff")
    transcript = exhibit(door.desk, task, "transcript")
    judged = judgements(door.desk, run_id, task_id)
    row = inbox_row(run_id, task)
    told: Json = {
        **ending.as_json(),
        "standing": task.status.value,
        "returned": [verdict.model_dump(mode="json") for verdict in task.returned],
        **judged_json(judged),
        "item": item_json(row, wall_clock()) if row else None,
        "diff": diff,
        "transcript": transcript,
        "next": list(_choices(ending)),
    }
    facts = lines_of(run_id, task, ending.trace_id, judged)
    door.speech.answer(told, _lines(ending, facts, diff, transcript))


def _lines(ending: Ending, facts: Iterable[str], diff: str, transcript: str) -> Iterator[str]:
    name = named(ending.run_id, ending.task.manifest.task_id)
    yield from facts
    head = diff.splitlines()
    if head:
        yield ""
        yield from head[:_DIFF]
        yield from _more(len(head) - _DIFF, f"agent-run show {name} --diff")
    tail = transcript.splitlines()
    if tail:
        yield ""
        yield from _more(len(tail) - _TAIL, f"agent-run show {name} --transcript")
        yield from tail[-_TAIL:]
    yield ""
    yield from (f"next        {choice}" for choice in _choices(ending))


def _more(count: int, command: str) -> Iterator[str]:
    if count > 0:
        yield f"... {count} lines more; {command} shows them all"


def _others(task: TaskState) -> Iterator[str]:
    """Yield what can be said about work that is not approved."""
    if checks_a_draft(task):
        yield "--reject REASON"
        return
    yield "--reject REASON [--again]"
    yield "--ask TEXT"
    if task.status is Status.ESCALATED:
        yield "--answer TEXT"


def _choices(ending: Ending) -> Iterator[str]:
    task = ending.task
    begin = f"agent-run review {named(ending.run_id, task.manifest.task_id)}"
    match task.status:
        case Status.ASKED if task.question and task.question.wider_scope:
            yield begin + widening(task.question.wider_scope)
            yield f"{begin} --answer TEXT"
        case Status.ASKED:
            yield f"{begin} --answer TEXT"
        case Status.ESCALATED | Status.SUBMITTED:
            if task.record is not None:
                yield f"{begin} --approve [--because TEXT]"
            yield from (f"{begin} {words}" for words in _others(task))
        case Status.WAITING if not task.approved:
            yield f"{begin} --approve"
        case status if status not in SETTLED:
            yield f"nothing to decide: it is {status}"
        case _:
            yield "nothing to decide: it is settled"
