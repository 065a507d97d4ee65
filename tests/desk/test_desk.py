"""The desk on both stores: together, alone, idle, forgetful and under pressure."""

import threading
import time
from collections.abc import Sequence
from datetime import timedelta

import pytest

from agent_run.desk import counter
from agent_run.desk.memory import Memory
from agent_run.errors import NotClaimable, SequenceTaken, StaleClaim, StoreError, TooBusy
from agent_run.ledger.commands import Claim, Heartbeat, Release, WriteNote
from agent_run.ledger.fold import fold
from agent_run.ledger.state import Status
from agent_run.ports.store import Chapter, Snapshot, Store
from tests.support.stores import Ticking, judge, open_desk, open_store, post, submit


def test_a_handoff_goes_from_posting_to_accepted(store: Store) -> None:
    desk = open_desk(store)

    desk.handle("r", post("t"))
    check = desk.claim_next(owner="bob")
    assert check is not None
    assert check.claim == 2
    desk.handle("r", submit("t", check.claim))
    state = desk.handle("r", judge("t"))

    assert state.tasks["t"].status is Status.ACCEPTED
    assert store.counts() == {Status.ACCEPTED: 1}
    assert list(desk.verify()) == []


def test_whatever_waits_is_committed_together(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = open_desk(store)
    begun, enough = threading.Event(), threading.Event()
    batches: list[int] = []
    append = store.append

    def watched(chapters: Sequence[Chapter]) -> None:
        batches.append(len(chapters))
        begun.set()
        assert enough.wait(30)
        append(chapters)

    monkeypatch.setattr(store, "append", watched)
    threads = [
        threading.Thread(target=desk.handle, args=(f"r{n}", post("t"))) for n in range(33)
    ]
    threads[0].start()
    assert begun.wait(30)
    for thread in threads[1:]:
        thread.start()
    while len(desk._waiting) < 32:
        threading.Event().wait(0.001)
    enough.set()
    for thread in threads:
        thread.join()

    assert batches == [1, 32]
    assert len(store.tasks()) == 33
    assert list(desk.verify()) == []


def test_those_who_come_back_wait_for_each_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, append = open_desk(store), store.append
    working, turns = 8, 10
    batches: list[int] = []

    def patient(chapters: Sequence[Chapter]) -> None:
        batches.append(len(chapters))
        until = time.monotonic() + 30
        while len(chapters) + len(desk._waiting) < working and time.monotonic() < until:
            threading.Event().wait(0.001)
        append(chapters)

    def work(number: int) -> None:
        nonlocal working
        for turn in range(turns):
            desk.handle(f"r{number}", post(f"t{turn}"))
        working -= 1

    monkeypatch.setattr(store, "append", patient)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(batches) == 80
    assert len(batches) <= 2 * turns + 2
    assert list(desk.verify()) == []


def test_an_interrupted_caller_leaves_nobody_waiting(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, append = open_desk(store), store.append

    def interrupted(chapters: Sequence[Chapter]) -> None:
        monkeypatch.setattr(store, "append", append)
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        desk.handle("r", post("t"))

    assert desk.handle("r", post("t")).seq == 1


def test_one_refusal_in_a_batch_hurts_nobody_else(store: Store) -> None:
    desk = open_desk(store)
    desk.handle("r", post("t"), Claim(task_id="t", owner="bob"))
    barrier, answers = threading.Barrier(9), list[str]()

    def ask(number: int) -> None:
        barrier.wait()
        try:
            if number % 3:
                desk.handle("r", post(f"u{number}"))
            else:
                desk.handle("r", Claim(task_id="t", owner=f"w{number}"))
        except NotClaimable as error:
            answers.append(str(error))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(answers) == 3
    assert all("is claimed by 'bob'" in answer for answer in answers)
    assert len(desk.run("r").tasks) == 7
    assert list(desk.verify()) == []


def test_several_commands_are_granted_all_or_none(store: Store) -> None:
    desk = open_desk(store)

    with pytest.raises(NotClaimable):
        desk.handle(
            "r", post("t"), Claim(task_id="t", owner="a"), Claim(task_id="t", owner="b")
        )

    assert store.read("r") == []
    assert store.tasks() == []


def test_a_refusal_is_decided_on_the_newest_state(store: Store, address: str) -> None:
    ours, theirs = open_desk(store), open_desk(open_store(address))
    ours.handle("r", post("t"), Claim(task_id="t", owner="ann"))
    theirs.run("r")
    ours.handle("r", Release(task_id="t", actor="ann", claim=2))

    state = theirs.handle("r", Claim(task_id="t", owner="bob"))

    assert state.tasks["t"].owner == "bob"
    with pytest.raises(NotClaimable, match="claimed by 'bob'"):
        ours.handle("r", Claim(task_id="t", owner="ann"))
    with pytest.raises(StaleClaim, match=r"claim 2 .* claim 4 of 'bob' counts now"):
        ours.handle("r", Heartbeat(task_id="t", actor="ann", claim=2))
    theirs.close()


def test_a_desk_that_was_idle_goes_on_where_the_others_are(store: Store, address: str) -> None:
    idle, busy = open_desk(store), open_desk(open_store(address))
    idle.handle("r", post("t"))
    for number in range(40):
        busy.handle("r", post(f"u{number}"))

    state = idle.handle("r", WriteNote(actor="ann", topic="back"))

    assert state.seq == 42
    assert busy.run("r") == idle.run("r")
    assert list(busy.verify()) == []
    busy.close()


def test_a_run_forgotten_is_read_again(store: Store) -> None:
    desk = open_desk(store)
    desk._memory = Memory(most_runs=2)
    for turn in range(3):
        for number in range(5):
            desk.handle(f"r{number}", post(f"t{turn}"))

    assert len(desk._memory._runs) == 2
    assert [desk.run(f"r{number}").seq for number in range(5)] == [3] * 5
    assert list(desk.verify()) == []


def test_a_long_run_is_restored_from_its_snapshot(
    store: Store, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_run.desk.memory._SMALLEST_SNAPSHOT", 20)
    monkeypatch.setattr("agent_run.desk.memory._FIRST_LOOK", 10)
    desk = open_desk(store)
    for number in range(15):
        state = desk.handle("r", post(f"t{number}"), Claim(task_id=f"t{number}", owner="bob"))
        claim = state.tasks[f"t{number}"].claim
        desk.handle("r", submit(f"t{number}", claim or 0))

    snapshot = store.snapshot("r")
    assert snapshot is not None
    assert snapshot.seq >= 20
    other = open_desk(open_store(address))
    assert other.run("r") == desk.run("r") == fold(page.event() for page in store.read("r"))
    for number in range(15):
        other.handle("r", judge(f"t{number}"))
    assert desk.run("r") == other.run("r")
    assert list(other.verify()) == []
    other.close()


def test_a_snapshot_that_cannot_be_kept_does_not_deny_what_was_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(snapshot: Snapshot) -> None:
        msg = "the disk is full"
        raise StoreError(msg)

    monkeypatch.setattr("agent_run.desk.memory._SMALLEST_SNAPSHOT", 1)
    monkeypatch.setattr(store, "save_snapshot", full)
    desk = open_desk(store)

    assert desk.handle("r", post("t")).seq == 1
    check = desk.claim_next(owner="bob")

    assert check is not None
    assert len(store.read("r")) == 2


def test_a_desk_gives_up_when_others_always_come_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def taken(*_: object) -> None:
        nonlocal tries
        tries += 1
        msg = "page 1 of run 'r' is taken"
        raise SequenceTaken(msg)

    monkeypatch.setattr(store, "append", taken)
    monkeypatch.setattr(store, "exclusive", taken)
    monkeypatch.setattr(counter, "_LONGEST_PAUSE", 0)
    desk = open_desk(store)

    with pytest.raises(TooBusy, match="others kept writing to r first, 30 times"):
        desk.handle("r", post("t"))

    assert tries == 30


def test_a_store_that_fails_is_told_to_everyone_who_waited(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(chapters: Sequence[Chapter]) -> None:
        msg = "the disk is gone"
        raise StoreError(msg)

    desk = open_desk(store)
    monkeypatch.setattr(store, "append", broken)
    with pytest.raises(StoreError, match="the disk is gone"):
        desk.handle("r", post("t"))
    monkeypatch.undo()

    assert desk.handle("r", post("t")).seq == 1


def test_finding_and_claiming_is_one_step(store: Store) -> None:
    desk = open_desk(store)
    desk.handle("r", post("low"), post("high", priority=5), post("mine", executor="codex"))

    claimed = [desk.claim_next(owner="bob", executors=("codex",)) for _ in range(4)]

    assert [check and check.task_id for check in claimed] == ["high", "low", "mine", None]
    assert desk.claim_next(owner="bob", run_id="other") is None


def test_work_that_cannot_be_claimed_does_not_hide_what_can(store: Store) -> None:
    desk = open_desk(store)
    for number in range(40):
        desk.handle(f"done{number}", post("t", priority=9, budget={"max_attempts": 1}))
        check = desk.claim_next(owner="bob", ttl=timedelta(microseconds=1))
        assert check is not None
    desk.handle("r", post("t"))

    check = desk.claim_next(owner="bob")

    assert check is not None
    assert check.run_id == "r"
    assert store.counts() == {Status.ESCALATED: 40, Status.CLAIMED: 1}


def test_a_clock_that_steps_backwards_breaks_no_ownership(store: Store, address: str) -> None:
    clock, late = Ticking(), Ticking()
    ours = open_desk(store, clock)
    theirs = open_desk(open_store(address), late)
    ours.handle("r", post("t", claim_ttl="60s"))
    check = ours.claim_next(owner="ann")
    assert check is not None

    clock.step(-3600)
    late.step(-7200)
    with pytest.raises(NotClaimable, match="claimed by 'ann'"):
        theirs.handle("r", Claim(task_id="t", owner="bob"))
    assert theirs.claim_next(owner="bob") is None
    beat = Heartbeat(task_id="t", actor="ann", claim=check.claim or 0)
    state = ours.handle("r", beat)

    assert state.tasks["t"].expires_at == check.expires_at
    times = [page.event().at for page in store.read("r")]
    assert times == sorted(times)
    clock.step(2 * 3600)
    assert theirs.claim_next(owner="bob") is None
    late.step(4 * 3600)
    taken = theirs.claim_next(owner="bob")
    assert taken is not None
    assert taken.owner == "bob"
    theirs.close()


def test_only_time_takes_a_claim_away(store: Store) -> None:
    clock = Ticking()
    desk = open_desk(store, clock)
    desk.handle("r", post("t", claim_ttl="60s"))
    check = desk.claim_next(owner="ann")
    assert check is not None
    for _ in range(20):
        clock.step(59)
        assert desk.claim_next(owner="bob") is None
        desk.handle("r", Heartbeat(task_id="t", actor="ann", claim=check.claim or 0))

    clock.step(60)
    taken = desk.claim_next(owner="bob")

    assert taken is not None
    for command in (
        Heartbeat(task_id="t", actor="ann", claim=check.claim or 0),
        Release(task_id="t", actor="ann", claim=check.claim or 0),
        submit("t", check.claim or 0, "ann"),
    ):
        with pytest.raises(StaleClaim, match=r"claim 2 on task 't' is not held: .* 'bob'"):
            desk.handle("r", command)
