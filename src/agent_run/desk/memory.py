"""What the desk remembers of runs, so that it reads only the pages it does not know."""

import gc
from collections import OrderedDict
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Final

from immutables import Map
from pydantic import JsonValue, TypeAdapter

from agent_run.contract.base import RunId
from agent_run.contract.budget import Budget, Spend
from agent_run.ledger.fold import EMPTY, fold
from agent_run.ledger.pages import FIRST, Page
from agent_run.ledger.state import RunState, TaskState
from agent_run.ports.store import Reader, Snapshot, Store

_MOST_RUNS: Final = 1_024
_FIRST_LOOK: Final = 500
_SMALLEST_SNAPSHOT: Final = 2_000


@contextmanager
def _no_garbage(pages: int) -> Generator[None]:
    """Keep Python from looking for garbage while many values are made that all stay."""
    pause = pages >= _FIRST_LOOK and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Known:
    """A run as it was when we last looked."""

    state: RunState = EMPTY
    digest: str = FIRST
    trace_id: str = ""
    saved: int = 0
    """The page of the newest snapshot."""

    def after(self, pages: list[Page]) -> "Known":
        """Return what is known once `pages` are read too."""
        if not pages:
            return self
        with _no_garbage(len(pages)):
            state = fold((page.event() for page in pages), onto=self.state)
        return Known(state, pages[-1].digest, pages[-1].trace_id, self.saved)

    @property
    def wants_snapshot(self) -> bool:
        # Twice as far each time: all snapshots together cost no more than the last one twice.
        seq = self.state.seq
        return seq >= _SMALLEST_SNAPSHOT and seq >= 2 * self.saved


UNKNOWN: Final = Known()


class Memory:
    """The runs seen lately; the least used are forgotten, and can be read again."""

    def __init__(self, most_runs: int = _MOST_RUNS) -> None:
        self._runs: OrderedDict[RunId, Known] = OrderedDict()
        self._most = most_runs

    def recall(self, run_id: RunId) -> Known:
        known = self._runs.get(run_id)
        if known is None:
            return UNKNOWN
        self._runs.move_to_end(run_id)
        return known

    def keep(self, run_id: RunId, known: Known) -> None:
        self._runs[run_id] = known
        if len(self._runs) > self._most:
            self._runs.popitem(last=False)

    def forget(self, run_ids: Iterable[RunId]) -> None:
        for run_id in run_ids:
            self._runs.pop(run_id, None)

    def refresh(self, run_id: RunId, reader: Reader, store: Store) -> bool:
        """Read the pages not yet known; say whether there were any."""
        before = known = self.recall(run_id)
        if known is UNKNOWN:
            known = known.after(reader.read(run_id, limit=_FIRST_LOOK))
            if known.state.seq == _FIRST_LOOK:
                known = _from_snapshot(store, run_id) or known
                known = known.after(reader.read(run_id, after=known.state.seq))
        else:
            known = known.after(reader.read(run_id, after=known.state.seq))
        if known.state.seq == before.state.seq:
            return False
        self.keep(run_id, known)
        return True

    def save(self, run_id: RunId, known: Known, store: Store) -> None:
        """Write a snapshot of a run that has grown much since the last one."""
        state = known.state
        store.save_snapshot(Snapshot(run_id, state.seq, known.digest, _pack(known)))
        self.keep(run_id, Known(state, known.digest, known.trace_id, state.seq))


@dataclass(frozen=True, slots=True)
class _Packed:
    """A run state in plain maps, which pydantic can write and read."""

    trace_id: str
    plain: dict[str, JsonValue]
    budget: Budget
    spent: Spend
    committed: Spend
    at: datetime | None
    opened_at: datetime | None
    tasks: dict[str, TaskState]
    dependents: dict[str, tuple[str, ...]]
    journal: dict[str, JsonValue]


@cache
def _packing() -> TypeAdapter[_Packed]:
    """Return what writes and reads snapshots; made when the first long run comes along."""
    return TypeAdapter(_Packed)


_PLAIN: Final = ("seq", "intent", "plan", "cancelled", "attempts")


def _pack(known: Known) -> bytes:
    state = known.state
    packed = _Packed(
        trace_id=known.trace_id,
        plain={name: getattr(state, name) for name in _PLAIN},
        budget=state.budget,
        spent=state.spent,
        committed=state.committed,
        at=state.at,
        opened_at=state.opened_at,
        tasks=dict(state.tasks),
        dependents=dict(state.dependents),
        journal=dict(state.journal),
    )
    return _packing().dump_json(packed, exclude_defaults=True, exclude_computed_fields=True)


def _from_snapshot(store: Store, run_id: RunId) -> Known | None:
    snapshot = store.snapshot(run_id)
    if snapshot is None:
        return None
    packed = _packing().validate_json(snapshot.body)
    state = RunState(
        **packed.plain,  # type: ignore[arg-type]  # written by `_pack` from a `RunState`
        budget=packed.budget,
        spent=packed.spent,
        committed=packed.committed,
        at=packed.at,
        opened_at=packed.opened_at,
        tasks=Map(packed.tasks),
        dependents=Map(packed.dependents),
        journal=Map(packed.journal),
    )
    return Known(state, snapshot.digest, packed.trace_id, snapshot.seq)
