"""What a contract expected, said in our own words, for each way a value can break it."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel

from agent_run.contract.base import NAME_PATTERN

_A_MAPPING: Final = "a mapping"
_A_LIST: Final = "a list"
_A_STRING: Final = "a string"
_AN_INTEGER: Final = "an integer"
_A_NUMBER: Final = "a number"
_A_DATE: Final = "a date such as '2026-01-31'"
_A_MOMENT: Final = "a date and time such as '2026-01-31T12:00:00Z'"
_A_DURATION: Final = "a duration such as '20m'"

_PHRASES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("model_type", "model_attributes_type", "dataclass_type"), _A_MAPPING),
    **dict.fromkeys(("dict_type", "mapping_type"), _A_MAPPING),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), _A_LIST),
    **dict.fromkeys(("iterable_type", "iteration_error"), _A_LIST),
    **dict.fromkeys(("string_type", "string_unicode", "bytes_type"), _A_STRING),
    "string_not_ascii": "text of ASCII characters",
    "string_pattern_mismatch": "text that matches {pattern}",
    **dict.fromkeys(("literal_error", "enum"), "{expected}"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), _AN_INTEGER),
    "int_parsing_size": "an integer of at most 64 bits",
    **dict.fromkeys(("float_type", "float_parsing"), _A_NUMBER),
    **dict.fromkeys(("decimal_type", "decimal_parsing"), _A_NUMBER),
    "decimal_max_digits": "a number of at most {max_digits} digits",
    "decimal_max_places": "a number with at most {decimal_places} decimal places",
    "decimal_whole_digits": "a number with at most {whole_digits} digits before the point",
    "finite_number": "a finite number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "none_required": "null",
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing"), _A_DATE),
    "date_from_datetime_inexact": _A_DATE,
    **dict.fromkeys(("datetime_type", "datetime_parsing"), _A_MOMENT),
    **dict.fromkeys(("datetime_object_invalid", "datetime_from_date_parsing"), _A_MOMENT),
    **dict.fromkeys(("date_past", "datetime_past"), "a time in the past"),
    **dict.fromkeys(("date_future", "datetime_future"), "a time in the future"),
    **dict.fromkeys(("time_type", "time_parsing"), "a time of day such as '12:30'"),
    "timezone_aware": "a time with its zone, such as '2026-01-31T12:00:00Z'",
    "timezone_naive": "a time without a zone",
    **dict.fromkeys(("time_delta_type", "time_delta_parsing"), _A_DURATION),
    "is_instance_of": "a {class}",
    "union_tag_invalid": "{discriminator} to be one of {expected_tags}",
    "union_tag_not_found": "a mapping with the key {discriminator}",
    **dict.fromkeys(("url_type", "url_parsing", "url_syntax_violation"), "a URL"),
    "url_scheme": "a URL that begins with {expected_schemes}",
    **dict.fromkeys(("uuid_type", "uuid_parsing"), "a UUID"),
    "uuid_version": "a UUID of version {expected_version}",
    "recursion_loop": "a value that does not hold itself",
    "recursion_depth_exceeded": "a value that is nested less deep",
}
_SIZES: Final[Mapping[str, tuple[str, str, str]]] = {
    "string_too_short": ("at least", "min_length", "character"),
    "string_too_long": ("at most", "max_length", "character"),
    "bytes_too_short": ("at least", "min_length", "byte"),
    "bytes_too_long": ("at most", "max_length", "byte"),
    "url_too_long": ("at most", "max_length", "character"),
    "too_short": ("at least", "min_length", "item"),
    "too_long": ("at most", "max_length", "item"),
}
_NAMED_TYPES: Final[tuple[tuple[type[object], str], ...]] = (
    (BaseModel, _A_MAPPING),
    (dict, _A_MAPPING),
    (str, _A_STRING),
    (bool, "true or false"),
    (int, _AN_INTEGER),
    (float, _A_NUMBER),
    (Decimal, _A_NUMBER),
    (timedelta, _A_DURATION),
    (datetime, _A_MOMENT),
    (date, _A_DATE),
    (tuple, _A_LIST),
    (list, _A_LIST),
    (frozenset, _A_LIST),
    (NoneType, "null"),
)


def phrase(kind: str, context: Mapping[str, Any]) -> str | None:
    """Return what was expected where an error of this kind arose; None for one of our own."""
    if kind in _SIZES:
        bound, name, unit = _SIZES[kind]
        size = context[name]
        return f"{bound} {size} {unit}{'' if size == 1 else 's'}"
    if kind == "string_pattern_mismatch" and context["pattern"] == NAME_PATTERN:
        return "letters, digits, '-', '_' and single dots"
    template = _PHRASES.get(kind)
    return None if template is None else template.format_map(context)


def described(annotation: object) -> str:
    """Return what a key of this type expects: `a string`, `a list`, `'stop' or 'degrade'`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return described(arguments[0])
    if origin is Literal:
        return " or ".join(repr(choice) for choice in arguments)
    plain = origin or annotation
    if isinstance(plain, type):
        if issubclass(plain, Enum):
            return " or ".join(repr(choice.value) for choice in plain)
        for known, said in _NAMED_TYPES:
            if issubclass(plain, known):
                return said
    if arguments:
        return " or ".join(dict.fromkeys(described(argument) for argument in arguments))
    return "a value"
