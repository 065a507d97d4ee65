"""The strict reader: text of YAML or JSON in, a document or a list of faults out.

Nothing is guessed and nothing is dropped. Every fault that can be found is reported at once,
with its file, line and key, and what was expected.
"""

from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ValidationError

from agent_run.contract.building import Builder, ReadingLimits
from agent_run.contract.decoding import Format, decoded, without_unfit
from agent_run.contract.explaining import explained
from agent_run.contract.faults import Fault, Findings, Place, refusal
from agent_run.contract.files import content_of
from agent_run.contract.json_reading import read_json
from agent_run.contract.places import Document, Lines, paths_at
from agent_run.contract.yaml_reading import read_yaml

ModelT = TypeVar("ModelT", bound=BaseModel)

_DEFAULT_LIMITS = ReadingLimits()


def read_document(
    text: str | bytes,
    *,
    source: str,
    format: Literal["yaml", "json"] | None = None,  # noqa: A002 - the word callers know
    limits: ReadingLimits = _DEFAULT_LIMITS,
    go_on: bool = False,
) -> Document:
    """Return what `text` says, with the place of each key.

    With `go_on`, a text that can be read to its end in spite of its faults is returned with
    them, so that `load` tells all that is wrong at once.

    Without `format`, the ending of `source` decides; without a known ending, a text that
    begins with `{` or `[` is JSON and any other is YAML.

    Raises:
        InvalidDocument: `text` is not a strict document; `faults` names everything wrong.
    """
    findings = Findings(source, limits.max_faults)
    whole = decoded(text, longest=limits.max_bytes, findings=findings)
    form = format or _format_of(source, whole)
    fit, unfit = without_unfit(whole, form=form, most=limits.max_faults)
    builder = Builder(findings, limits)
    try:
        (read_json if form == "json" else read_yaml)(fit, builder)
    finally:
        # Where the text breaks off, what is wrong with its characters is told all the same.
        _refuse_characters(unfit, builder, go_on=go_on)
    if builder.root is None:
        findings.stop(None, key="", message="is empty, expected a document")
    if not go_on:
        findings.settle()
    lines = Lines(builder.root)
    return Document(source, builder.value, lines, tuple(findings.faults))


def load(model: type[ModelT], document: Document) -> ModelT:
    """Return `document` as a `model`.

    Raises:
        InvalidDocument: It is not one; `faults` names every key that is wrong, and where.
    """
    try:
        value = model.model_validate(document.value)
    except ValidationError as error:
        # What was no value in the text has only a stand-in, about which nothing can be said.
        told = {fault.key for fault in document.faults}
        found = explained(error, model=model, document=document)
        more = [fault for fault in found if fault.key not in told]
        raise refusal([*document.faults, *more]) from error
    if document.faults:
        raise refusal(document.faults)
    return value


def load_file(model: type[ModelT], file: Path) -> ModelT:
    """Return the document in `file` as a `model`.

    Raises:
        InvalidDocument: It cannot be read, or is not one.
    """
    text = content_of(file, most=_DEFAULT_LIMITS.max_bytes)
    return load(model, read_document(text, source=str(file), go_on=True))


def _format_of(source: str, text: str) -> Format:
    name = source.lower()
    if name.endswith((".yaml", ".yml")):
        return "yaml"
    if name.endswith(".json") or text.lstrip()[:1] in {"{", "["}:
        return "json"
    return "yaml"


def _refuse_characters(
    unfit: list[tuple[Place, str]], builder: Builder, *, go_on: bool
) -> None:
    if not unfit or builder.findings.full:
        return
    places = [place for place, _ in unfit]
    keys = [""] * len(unfit) if builder.root is None else paths_at(builder.root, places)
    for (place, found), key in zip(unfit, keys, strict=True):
        builder.findings.add(place, key=key, message=f"holds {found}, expected text")
    if not go_on:
        builder.findings.settle()


__all__ = [
    "Document",
    "Fault",
    "Lines",
    "ReadingLimits",
    "load",
    "load_file",
    "read_document",
]
