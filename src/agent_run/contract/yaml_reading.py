"""Strict YAML: one document of mappings, lists and scalars, by the rules of YAML 1.2.

Only the parser of PyYAML is used, never its constructors: nothing in a text can name a type.
Values are made from its events, so that a bomb is refused at the event that would light it.
"""

import re
from typing import Final, Protocol, TypeAlias

import yaml

from agent_run.contract.building import Builder, Scalar
from agent_run.contract.faults import Place, shown


class _Mark(Protocol):
    """Where the parser was, counted from 0; both parsers have a class of their own for it."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


_Value: TypeAlias = yaml.ScalarEvent | yaml.MappingStartEvent | yaml.SequenceStartEvent
Parser: TypeAlias = type[yaml.SafeLoader] | type[yaml.CSafeLoader]

PARSER: Final[Parser] = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""The C parser where it was built; the Python one gives the same values, ten times slower."""

_NUMBER: Final = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
)
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_STANDARD_TAGS: Final = "tag:yaml.org,2002:"
_VERSIONS: Final = frozenset({None, (1, 1), (1, 2)})
_MERGING: Final = {
    "<<": "has the merge key '<<', expected each key to be written out",
    "=": "has the key '=', expected a name; put it in quotes if it is meant",
}


def read_yaml(text: str, builder: Builder, *, parser: Parser = PARSER) -> None:
    """Hand the one YAML document that `text` holds to `builder`, part by part.

    Raises:
        InvalidDocument: `text` is no YAML, or is larger or deeper than allowed.
    """
    documents = 0
    try:
        for event in yaml.parse(text, Loader=parser):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                _begin(event, builder, documents)
            else:
                _take(event, builder)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        told = f"is not YAML: {error.problem or error.context}"
        builder.findings.stop(_place(mark), key=builder.path, message=told)
    except (yaml.YAMLError, ValueError, OverflowError):
        # The Python parser lets the errors of `chr` and `int` out, where C has its own.
        told = "is not YAML: it holds an escape or a version that cannot be read"
        builder.findings.stop(None, key=builder.path, message=told)


def _begin(event: yaml.DocumentStartEvent, builder: Builder, number: int) -> None:
    place = _place(event.start_mark)
    if number > 1:
        told = "begins a second document, expected one document in one file"
        builder.findings.stop(place, key="", message=told)
    if event.tags:
        builder.fault(place, "has a %TAG directive, expected a document without tags")
    if event.version not in _VERSIONS:
        version = ".".join(str(part) for part in event.version or ())
        builder.fault(place, f"is YAML {version}, expected YAML 1.1 or 1.2")


def _take(event: yaml.Event, builder: Builder) -> None:
    match event:
        case yaml.ScalarEvent():
            _refuse_extras(event, builder)
            _scalar(event, builder)
        case yaml.MappingStartEvent():
            _refuse_extras(event, builder)
            builder.open({}, _place(event.start_mark))
        case yaml.SequenceStartEvent():
            _refuse_extras(event, builder)
            builder.open([], _place(event.start_mark))
        case yaml.CollectionEndEvent():
            builder.close()
        case yaml.AliasEvent():
            place = _place(event.start_mark)
            told = f"is the alias {shown(event.anchor)}, expected the value to be written out"
            builder.fault(place, told)
            builder.scalar(f"*{event.anchor}", place)
        case _:
            # The ends of the document and of the stream carry nothing.
            return


def _refuse_extras(event: _Value, builder: Builder) -> None:
    if event.anchor is None and event.tag is None:
        return
    place = _place(event.start_mark)
    if event.anchor is not None:
        told = f"has the anchor {shown(event.anchor)}, expected a document without anchors"
        builder.fault(place, told)
    if event.tag is not None:
        tag = event.tag.replace(_STANDARD_TAGS, "!!")
        told = f"has the tag {shown(tag)}, expected a plain value without a tag"
        builder.fault(place, told)


def _scalar(event: yaml.ScalarEvent, builder: Builder) -> None:
    value, place = event.value, _place(event.start_mark)
    if event.style:
        builder.scalar(value, place)
    elif value == "" and builder.root is None:
        # Nothing stands in the document: there is no value to hand over.
        return
    elif builder.expects_key and value in _MERGING:
        builder.fault(place, _MERGING[value])
        builder.scalar(value, place)
    elif value in _WORDS:
        builder.scalar(_WORDS[value], place)
    elif _NUMBER.fullmatch(value):
        builder.number(value, place)
    elif _NOT_FINITE.fullmatch(value):
        builder.fault(place, f"is {value}, expected a finite number")
        builder.scalar(0, place)
    else:
        builder.scalar(value, place)


def _place(mark: _Mark | None) -> Place:
    # Only events that a program makes up have no mark.
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)
