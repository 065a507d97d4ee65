"""The work of `check`: every fault of every file, before anything is spent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from agent_run.cli.app import fault_as_json
from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.documents import kind_of, load_as, named_files, read_file
from agent_run.cli.work.wording import dumped
from agent_run.contract.claim import ClaimCheck
from agent_run.contract.faults import Fault
from agent_run.contract.manifest import Manifest
from agent_run.contract.payload import check_schema, payload_faults
from agent_run.contract.plan import Plan
from agent_run.contract.reading import Document
from agent_run.contract.shapes import Orchestration, Routing
from agent_run.errors import ContractError, InvalidDocument
from agent_run.ledger.words import counted


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found about one file."""

    file: str
    kind: str | None = None
    """`None` means that it could not even be told what it is."""
    value: BaseModel | None = None
    faults: tuple[object, ...] = ()

    def as_json(self) -> Json:
        faults = [fault_as_json(fault) for fault in self.faults]
        return {
            "file": self.file,
            "kind": self.kind,
            "ok": not faults,
            "faults": faults,
            "canonical": dumped(self.value, brief=True),
        }


def check(speech: Speech, *, files: tuple[str, ...], kind: str | None) -> int:
    """Say of each file whether it holds, and if not, everything that is wrong with it."""
    found = list(read_all(files, kind=kind))
    faults = [fault for checked in found for fault in checked.faults]
    for fault in faults:
        speech.warn(str(fault))
    told: dict[str, object] = {"ok": not faults, "files": [one.as_json() for one in found]}
    if faults:
        message = "\n".join(map(str, faults))
        listed = [fault_as_json(fault) for fault in faults]
        told["error"] = {"kind": "InvalidDocument", "message": message, "faults": listed}
    speech.answer(told, (_line(checked) for checked in found if not checked.faults))
    return Exit.INVALID if faults else Exit.DONE


def read_all(files: Iterable[str], *, kind: str | None = None) -> Iterable[Checked]:
    """Yield what each file holds, or what is wrong with it."""
    for named in files:
        try:
            names = list(named_files([named]))
        except InvalidDocument as error:
            yield Checked(named, faults=error.faults)
            continue
        for name in names:
            yield _read(name, kind)


def _read(name: str, wanted: str | None) -> Checked:
    kind = wanted
    try:
        document = read_file(name)
        kind = wanted or kind_of(document)
        value = load_as(document, kind)
    except InvalidDocument as error:
        return Checked(name, kind, faults=error.faults)
    faults = tuple(_payload_faults(value, document))
    return Checked(name, kind, None if faults else value, faults)


def _payload_faults(value: BaseModel, document: Document) -> Iterator[Fault]:
    """Yield what is wrong with the schemas of tasks, and with inputs that break theirs."""
    match value:
        case Manifest():
            tasks = [("", value)]
        case Plan():
            tasks = [(f"steps[{at}].", step) for at, step in enumerate(value.steps)]
            tasks += [(f"final[{at}].", step) for at, step in enumerate(value.final)]
        case Orchestration():
            tasks = [(f"workers[{at}].", one) for at, one in enumerate(value.workers)]
            tasks += [("synthesis.", value.synthesis)]
        case Routing():
            tasks = [(f"specialists.{name}.", one) for name, one in value.specialists.items()]
        case _:
            return
    for place, task in tasks:
        for name, told in _wrong(task):
            where = document.lines.get(place + name) or document.lines.get(place[:-1])
            line, column = where or document.lines.root.place
            yield Fault(document.source, line, column, place + name, told)


def _wrong(task: Manifest) -> Iterator[tuple[str, str]]:
    for name in ("input_schema", "output_schema"):
        schema = getattr(task, name)
        try:
            if schema is not None:
                check_schema(schema)
        except ContractError as error:
            yield name, str(error)
            return
    if task.input is not None and task.input_schema is not None:
        yield from (("input", one) for one in payload_faults(task.input, task.input_schema))


def _line(checked: Checked) -> str:
    match checked.value:
        case Manifest() as manifest:
            about = f" {manifest.task_id}"
        case Plan() as plan:
            about = f" of {counted(len(plan.steps), 'step')}" + (
                f" and {len(plan.final)} final" if plan.final else ""
            )
        case ClaimCheck() as claim:
            about = f" on {claim.task_id}"
        case _:
            about = ""
    return f"{checked.file}: {checked.kind}{about}, ok"
