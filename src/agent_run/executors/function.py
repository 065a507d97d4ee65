"""A Python function as an executor: a typed brief in, a typed record out.

The function runs in our own process and is trusted like the rest of the program; it is for
code its author wrote, not for code an agent wrote. One that takes a second argument works on
files: it is given the folder of its throwaway copy.
"""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Final, Generic, TypeAlias, get_args, get_type_hints

import anyio
from pydantic import JsonValue, TypeAdapter, ValidationError
from typing_extensions import TypeVar

from agent_run.contract.brief import Brief
from agent_run.contract.record import Record
from agent_run.contract.values import in_words
from agent_run.errors import ContractError
from agent_run.ports.executor import Job, Seen, Work

Migration: TypeAlias = Callable[[JsonValue, str], JsonValue]
"""From a payload of an older shape, and the fingerprint of that shape, to one of today's."""
Function: TypeAlias = Callable[..., Awaitable[Record[Any]] | Record[Any]]
FunctionT = TypeVar("FunctionT", bound=Function)

_ANYTHING: Final = TypeAdapter[Any](Any)


@dataclass(frozen=True, slots=True)
class FunctionExecutor(Generic[FunctionT]):
    """Calls one function for every attempt; can still be called as that function."""

    name: str
    function: FunctionT
    takes: TypeAdapter[Any] | None
    """Checks the input. `None` means that the function takes any JSON value."""
    gives: TypeAdapter[Any] | None
    """Checks the output. `None` means that the function may give any JSON value."""
    wants_workspace: bool = False
    migrate: Migration | None = None
    """Brings a payload that was handed over before the function changed up to date."""
    taken: object = None
    """The type that `takes` checks for."""
    given: object = None
    """The type that `gives` checks for."""

    def __call__(self, brief: Brief[Any], *more: Any) -> Any:
        """Call the function itself."""
        return self.function(brief, *more)

    async def run(self, job: Job) -> Work:
        """Call the function within its time, and check what it was given and gives."""
        started = monotonic()
        try:
            brief = self._typed(job.brief)
        except ContractError as misfit:
            # Nothing was done yet, and another attempt would meet the same payload.
            record = Record(status="blocked", next_action="escalate", error=str(misfit))
            return Work(record, _seen(started))
        wall = job.limits.wall_sec
        try:
            with nullcontext() if wall is None else anyio.fail_after(wall):
                answer = await self._called(brief, job.workspace)
        except TimeoutError:
            return _failed("timeout", f"took longer than {wall} s", started)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is the task's failure only
            return _failed("exited", f"{type(error).__name__}: {error}", started)
        return self._checked(answer, started)

    def _typed(self, brief: Brief[Any]) -> Brief[Any]:
        """Return the brief with its input typed; what no longer fits is migrated or refused."""
        if self.takes is None:
            return brief
        try:
            value = self.takes.validate_python(brief.input)
        except ValidationError as error:
            value = self._migrated(brief, error)
        return brief.model_copy(update={"input": value})

    def _migrated(self, brief: Brief[Any], error: ValidationError) -> Any:
        said = f"input of task {brief.task_id!r} does not fit executor {self.name!r}"
        if self.takes is None or self.migrate is None:
            msg = f"{said}: {in_words(error, wanted=self.taken, value=brief.input)}"
            raise ContractError(msg) from error
        older = brief.envelopes[0].fingerprint if brief.envelopes else ""
        try:
            return self.takes.validate_python(self.migrate(brief.input, older))
        except ValidationError as still:
            told = in_words(still, wanted=self.taken, value=None)
            msg = f"{said}, nor does what its migration made of it: {told}"
            raise ContractError(msg) from still
        except (ValueError, KeyError, TypeError) as broken:
            msg = f"{said}, and its migration failed: {type(broken).__name__}: {broken}"
            raise ContractError(msg) from broken

    async def _called(self, brief: Brief[Any], workspace: Path | None) -> object:
        given = (brief, workspace) if self.wants_workspace else (brief,)
        if inspect.iscoroutinefunction(self.function):
            answer: object = await self.function(*given)
            return answer

        def call() -> object:
            return self.function(*given)

        return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)

    def _checked(self, record: object, started: float) -> Work:
        if not isinstance(record, Record):
            said = f"returned {type(record).__name__}, expected a Record"
            return Work(None, _seen(started), said)
        try:
            output = _as_json(record.output, self.gives)
        except ValidationError as error:
            told = in_words(error, wanted=self.given, value=record.output)
            return Work(None, _seen(started), f"output does not fit: {told}")
        return Work(_plain(record, output), _seen(started, record))


def executor(
    name: str, *, migrate: Migration | None = None
) -> Callable[[FunctionT], FunctionExecutor[FunctionT]]:
    """Return a decorator that makes a function the executor called `name`.

    The function takes a `Brief[Input]` and returns a `Record[Output]`; both are checked.
    One that works on files takes the `Path` of its copy as well. `migrate` is asked when a
    run that was paused hands over a payload that an older version of the function took.
    """

    def decorated(function: FunctionT) -> FunctionExecutor[FunctionT]:
        hints = get_type_hints(function)
        taken = list(inspect.signature(function).parameters)
        if len(taken) not in {1, 2}:
            expected = "a brief, or a brief and a path"
            msg = f"executor {name!r} takes {len(taken)} arguments, expected {expected}"
            raise ContractError(msg)
        takes, gives = _inside(hints.get(taken[0])), _inside(hints.get("return"))
        return FunctionExecutor(
            name,
            function,
            _adapter(takes),
            _adapter(gives),
            wants_workspace=len(taken) > 1,
            migrate=migrate,
            taken=takes,
            given=gives,
        )

    return decorated


def _inside(annotation: Any) -> Any:
    """Return what stands in the brackets of `Brief[...]` or `Record[...]`; None for nothing."""
    arguments = get_args(annotation)
    metadata = getattr(annotation, "__pydantic_generic_metadata__", None)
    if metadata:
        arguments = metadata["args"]
    return arguments[0] if arguments else None


def _adapter(wanted: Any) -> TypeAdapter[Any] | None:
    return None if wanted is None else TypeAdapter(wanted)


def _as_json(output: Any, gives: TypeAdapter[Any] | None) -> JsonValue:
    if output is None:
        return None
    adapter = gives or _ANYTHING
    value: JsonValue = adapter.dump_python(adapter.validate_python(output), mode="json")
    return value


def _plain(record: Record[Any], output: JsonValue) -> Record:
    """Return the record with `output` as JSON; one that is plain was checked when made."""
    if type(record) is Record:
        return record.model_copy(update={"output": output})
    return Record.model_validate({**record.model_dump(exclude={"output"}), "output": output})


def _failed(ended: str, said: str, started: float) -> Work:
    return Work(None, Seen(ended=ended, error=said, elapsed_ms=_elapsed(started)))


def _seen(started: float, record: Record[Any] | None = None) -> Seen:
    used = record.spend if record else None
    return Seen(
        exit_code=0,
        elapsed_ms=_elapsed(started),
        tokens_used=used.tokens if used else 0,
        requests_made=used.requests if used else 0,
        cost_usd=record.cost_usd if record else None,
    )


def _elapsed(started: float) -> int:
    return round((monotonic() - started) * 1_000)
