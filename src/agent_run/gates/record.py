"""Gates about the record: does it say what is so, and is its author sure of it?

A record is a claim. It is compared with the tree and with what the worker saw; a right fix
with a false record is a finding.
"""

from collections.abc import Iterator

from agent_run.contract.payload import payload_faults
from agent_run.contract.verdict import Finding, Reason
from agent_run.ports.gate import Case


class RecordGate:
    """Does what the executor says agree with what is there?"""

    name = "record"

    async def check(self, case: Case) -> tuple[Finding, ...]:
        """Return a finding for each thing the record has wrong, or one that passes."""
        found = tuple(
            Finding(gate=self.name, outcome="fail", reason=reason, evidence=said, paths=paths)
            for reason, said, paths in _problems(case)
        )
        if found:
            return found
        said = "agrees with what was observed"
        if _built(case):
            said = "built from what was observed"
        elif case.record.commands_run and case.observed.get("commands_run") is None:
            said += "; which commands were run was not"
        return (Finding(gate=self.name, outcome="pass", reason="verified", evidence=said),)


class ConfidenceGate:
    """Is the executor as sure of its work as the manifest demands?"""

    name = "confidence"

    async def check(self, case: Case) -> tuple[Finding, ...]:
        """Return one finding where the manifest sets a threshold."""
        wanted, said = case.manifest.min_confidence, case.record.confidence
        if not wanted:
            return ()
        enough = said is not None and said >= wanted
        shown = "not stated" if said is None else f"{said:g}"
        return (
            Finding(
                gate=self.name,
                outcome="pass" if enough else "fail",
                reason="verified" if enough else "low_confidence",
                evidence=f"confidence {shown}, wanted at least {wanted:g}",
            ),
        )


def _problems(case: Case) -> Iterator[tuple[Reason, str, tuple[str, ...]]]:
    invalid, error = case.observed.get("invalid_record"), case.observed.get("error")
    if invalid:
        yield ("invalid_record", str(invalid), ())
    if error:
        reason: Reason = (
            "timeout" if case.observed.get("ended") == "timeout" else "executor_failed"
        )
        yield (reason, str(error), ())
    elif case.record.status in {"failed", "skipped"}:
        said = case.record.error or case.record.notes or "without saying why"
        yield ("executor_failed", f"the executor reports {case.record.status}: {said}", ())
    if case.record.next_action == "revise" and not error:
        said = case.record.next_step or case.record.notes or "without saying why"
        yield ("executor_failed", f"the executor wants to revise its work: {said}", ())
    yield from _about_files(case)
    yield from _about_commands(case)
    yield from _about_output(case)


def _built(case: Case) -> bool:
    """Say whether we made the record ourselves; who hands one in cannot claim that."""
    return case.record.observed_only and case.observed.get("record_built") is True


def _about_files(case: Case) -> Iterator[tuple[Reason, str, tuple[str, ...]]]:
    if case.candidate is None or _built(case):
        return
    changed = {change.path for change in case.candidate.changes}
    refused = {issue.path for issue in case.candidate.refused}
    named = {path.removeprefix("./") for path in case.record.files_changed}
    invented = tuple(sorted(named - changed - refused))
    if invented:
        yield ("record_mismatch", "named as changed, but the same as before", invented)
    silent = tuple(sorted(changed - named))
    if silent:
        yield ("record_mismatch", "changed, but not named in the record", silent)


def _about_commands(case: Case) -> Iterator[tuple[Reason, str, tuple[str, ...]]]:
    seen = case.observed.get("commands_run")
    if not isinstance(seen, list) or _built(case):
        return  # nobody could see which commands were run
    really = [" ".join(str(command).split()) for command in seen]
    for claimed in case.record.commands_run:
        short = " ".join(claimed.split())
        if not any(short in command for command in really):
            yield ("record_mismatch", f"command {claimed!r} was never run", ())


def _about_output(case: Case) -> Iterator[tuple[Reason, str, tuple[str, ...]]]:
    schema = case.manifest.output_schema
    if schema is None:
        return
    for fault in payload_faults(case.record.output, schema):
        yield ("invalid_record", f"output {fault}", ())
