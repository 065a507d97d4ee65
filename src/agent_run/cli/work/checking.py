"""The work of `check`: every fault of every file, before anything is spent."""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import BaseModel

from agent_run.cli.app import fault_as_json
from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.documents import kind_of, load_as, named_files, read_file
from agent_run.cli.work.wording import dumped
from agent_run.contract.claim import ClaimCheck
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.errors import InvalidDocument
from agent_run.ledger.views import counted


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
        return Checked(name, kind, load_as(document, kind))
    except InvalidDocument as error:
        return Checked(name, kind, faults=error.faults)


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
