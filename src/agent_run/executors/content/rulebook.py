"""Brand rules in Vale's YAML format: one file, one rule; a folder of files is a style.

What we cannot apply is named with its reason and kept in the rulebook, never skipped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import yaml

from agent_run.errors import InvalidDocument
from agent_run.executors.content.nesting import refuse_deep_nesting
from agent_run.executors.content.remarks import Severity, digest_of
from agent_run.executors.content.scopes import fault_of_scope

Extends: TypeAlias = Literal[
    "existence", "substitution", "occurrence", "repetition", "capitalization"
]

_LARGEST_FILE: Final = 1_000_000
_MOST_FILES: Final = 2_000
_YES: Final = frozenset({"true", "yes", "on"})
_NO: Final = frozenset({"false", "no", "off"})
_EXTENDS: Final[dict[object, Extends]] = {one: one for one in get_args(Extends)}
_LEVELS: Final[dict[object, Severity]] = {one: one for one in get_args(Severity)}


@dataclass(frozen=True, slots=True)
class Rule:
    """One brand rule, as its file says it."""

    name: str
    """`Style.File`, as Vale names it."""
    extends: Extends
    message: str
    level: Severity = "warning"
    scopes: tuple[str, ...] = ("text",)
    """The rule looks at what any one of these selects."""
    link: str = ""
    ignorecase: bool = False
    nonword: bool = False
    append: bool = False
    capitalize: bool = False
    alpha: bool = False
    tokens: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    swap: tuple[tuple[str, str], ...] = ()
    token: str = ""
    most: int | None = None
    least: int | None = None
    match: str = ""
    style: str = "AP"
    threshold: float = 0.8
    action: tuple[str, ...] = ()
    """Name and parameters of the fix an editor would offer."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A rule file that is not applied, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All rules of one or more styles."""

    rules: tuple[Rule, ...]
    refused: tuple[Refused, ...] = ()

    @property
    def digest(self) -> str:
        """A digest that changes when any rule does."""
        return digest_of([str(rule) for rule in self.rules], [str(one) for one in self.refused])

    def __add__(self, other: "Rulebook") -> "Rulebook":
        return Rulebook(self.rules + other.rules, self.refused + other.refused)


def starter_rules() -> Rulebook:
    """Return the rules that come with this package: a plain and honest brand voice."""
    folder = resources.files("agent_run.executors.content").joinpath("rules", "Plain")
    book = Rulebook(())
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        if file.name.endswith(".yml"):
            name = f"Plain.{file.name.removesuffix('.yml')}"
            book += read_rule(file.read_text("utf-8"), name)
    return book


def load_style(path: Path) -> Rulebook:
    """Return the rules below `path`: a style folder, a folder of styles, or one file.

    Raises:
        InvalidDocument: There is no rule file at all, or more than anyone could mean.
    """
    if path.is_file():
        files = [path]
    else:
        files = sorted(one for one in path.rglob("*") if one.suffix in {".yml", ".yaml"})
    if not files:
        msg = f"style {path.name!r} holds no rule, expected files ending in '.yml'"
        raise InvalidDocument(msg)
    if len(files) > _MOST_FILES:
        msg = f"style {path.name!r} holds {len(files)} files, expected at most {_MOST_FILES}"
        raise InvalidDocument(msg)
    book = Rulebook(())
    for file in files:
        book += _load(file)
    return book


def read_rule(text: str, name: str) -> Rulebook:
    """Return the one rule that `text` says, as a rulebook of one rule or one refusal."""
    try:
        refuse_deep_nesting(text)
        # Every scalar stays a string: 'no' and 'on' are words that people write rules about.
        said = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it builds only strings
        return Rulebook((_rule(said, name),))
    except (yaml.YAMLError, RecursionError) as error:
        return Rulebook((), (Refused(name, f"not YAML: {_first_line(error)}"),))
    except ValueError as error:
        return Rulebook((), (Refused(name, str(error)),))


def _load(file: Path) -> Rulebook:
    name = f"{file.parent.name}.{file.stem}"
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST_FILE:
            reason = f"not a file of at most {_LARGEST_FILE} bytes"
            return Rulebook((), (Refused(name, reason),))
        return read_rule(file.read_text("utf-8-sig"), name)
    except (OSError, UnicodeDecodeError) as error:
        return Rulebook((), (Refused(name, f"cannot be read: {error}"),))


def _rule(said: object, name: str) -> Rule:
    if not isinstance(said, dict):
        msg = "not a mapping with the key 'extends'"
        raise ValueError(msg)  # noqa: TRY004 - a wrong document, not a wrong call
    extends = _EXTENDS.get(_string(said, "extends"))
    if extends is None:
        msg = f"extends {said.get('extends')!r} is not one of {', '.join(get_args(Extends))}"
        raise ValueError(msg)
    level = _LEVELS.get(_string(said, "level", "warning"))
    if level is None:
        msg = f"level {said['level']!r} is not one of {', '.join(get_args(Severity))}"
        raise ValueError(msg)
    scopes = _strings(said, "scope") or ("text",)
    faults = [fault for scope in scopes if (fault := fault_of_scope(scope))]
    if faults:
        raise ValueError("; ".join(faults))
    return _parts(said, Rule(name, extends, _string(said, "message", name), level, scopes))


def _parts(said: Mapping[Any, Any], rule: Rule) -> Rule:
    swap = said.get("swap", {})
    action = said.get("action", {})
    if not isinstance(swap, dict) or not isinstance(action, dict):
        msg = "swap and action are not both mappings"
        raise ValueError(msg)  # noqa: TRY004 - a wrong document, not a wrong call
    return Rule(
        rule.name,
        rule.extends,
        rule.message,
        rule.level,
        rule.scopes,
        link=_string(said, "link"),
        ignorecase=_flag(said, "ignorecase"),
        nonword=_flag(said, "nonword"),
        append=_flag(said, "append"),
        capitalize=_flag(said, "capitalize"),
        alpha=_flag(said, "alpha"),
        tokens=tuple(one for one in _strings(said, "tokens") if one.strip()),
        raw=_strings(said, "raw"),
        exceptions=_strings(said, "exceptions"),
        swap=tuple((_word(key), _word(value)) for key, value in swap.items()),
        token=_string(said, "token"),
        most=_number(said, "max"),
        least=_number(said, "min"),
        match=_string(said, "match"),
        style=_string(said, "style", "AP"),
        threshold=float(_string(said, "threshold", "0.8")),
        action=tuple(_words(action)),
    )


def _words(action: Mapping[Any, Any]) -> list[str]:
    params = action.get("params", [])
    name = [_word(action["name"])] if "name" in action else []
    return name + [_word(one) for one in params if isinstance(one, str)]


def _word(value: object) -> str:
    if not isinstance(value, str):
        msg = "a key or value that should be text is a list or mapping"
        raise ValueError(msg)  # noqa: TRY004 - a wrong document, not a wrong call
    return value


def _string(said: Mapping[Any, Any], key: str, default: str = "") -> str:
    return _word(said.get(key, default))


def _strings(said: Mapping[Any, Any], key: str) -> tuple[str, ...]:
    value = said.get(key, [])
    if isinstance(value, str):
        return (value,) if value else ()
    if not isinstance(value, list):
        msg = f"{key} is not a list of texts"
        raise ValueError(msg)  # noqa: TRY004 - a wrong document, not a wrong call
    return tuple(_word(one) for one in value)


def _flag(said: Mapping[Any, Any], key: str) -> bool:
    value = _string(said, key, "false").lower()
    if value not in _YES | _NO:
        msg = f"{key} {value!r} is not true or false"
        raise ValueError(msg)
    return value in _YES


def _number(said: Mapping[Any, Any], key: str) -> int | None:
    value = _string(said, key)
    return int(value) if value else None


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
