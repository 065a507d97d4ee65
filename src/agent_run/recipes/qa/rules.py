"""The rules of one step: which files it goes by, and the checkers made of them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from pydantic import Field, TypeAdapter, ValidationError

from agent_run.contract.base import Contract, Flag, Lines
from agent_run.errors import InvalidDocument
from agent_run.executors.content.addresses import door_for
from agent_run.executors.content.checking import Checker
from agent_run.executors.content.classifier import load_model, starter_model
from agent_run.executors.content.compliance import ComplianceChecker
from agent_run.executors.content.lexicon import load_lexicon, starter_lexicon
from agent_run.executors.content.links import LinkChecker
from agent_run.executors.content.proxies import NO_PROXIES, Proxies
from agent_run.executors.content.rulebook import load_style, starter_rules
from agent_run.executors.content.spelling import SpellingChecker, read_accept_list
from agent_run.executors.content.tone import ToneChecker
from agent_run.recipes.qa.checklist import CheckName, HostName, Step

_HOST: Final = TypeAdapter(HostName)
_NAMED: Final = re.compile(r"[^\s,;:'\"()\[\]]+")
# What comes with the package does not change while a process lives.
_STARTER_RULES: Final = lru_cache(maxsize=1)(starter_rules)
_STARTER_LEXICON: Final = lru_cache(maxsize=1)(starter_lexicon)
_STARTER_MODEL: Final = lru_cache(maxsize=1)(starter_model)
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".txt", ".json"})
_DOCUMENTS: Final = frozenset(
    {".md", ".markdown", ".mdx", ".rst", ".adoc", ".html", ".htm", ".pdf", ".doc", ".docx",
     ".odt", ".csv", ".xls", ".xlsx", ".toml", ".ini", ".xml"}
)  # fmt: skip
"""What people keep rules in that no checker can go by."""
_ENDING: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}\Z")


class Rules(Contract):
    """What a step goes by; a place that is `None` means the rules that come with us."""

    style: str | None = None
    """A Vale style: a folder of rule files, or one of them."""
    lexicon: str | None = None
    classifier: str | None = None
    """A model that `Classifier.save` wrote."""
    accept_list: str | None = None
    accept: tuple[str, ...] = ()
    """Words that are spelled right here."""
    root: str | None = None
    """Relative links may not lead out of it. `None` is the folder of the draft."""
    offline: Flag = Field(default=False)
    allow_hosts: tuple[HostName, ...] = ()
    """Hosts that are asked although they are private."""
    unused: Lines = ()
    """What the context of the step names and nobody goes by, a sentence each."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The files that are gone by."""
        named = (self.style, self.lexicon, self.classifier, self.accept_list)
        return tuple(one for one in named if one)


def host_names(given: Iterable[str]) -> tuple[HostName, ...]:
    """Return the hosts as rules hold them.

    Raises:
        InvalidDocument: One of them is not the name of a host, but a URL, say.
    """
    hosts = tuple(given)
    for host in hosts:
        try:
            _HOST.validate_python(host)
        except ValidationError as error:
            msg = f"host {host!r} is not the name of a host, expected one like 'wiki.example'"
            raise InvalidDocument(msg) from error
    return hosts


def rules_for(step: Step, beside: Path, given: Rules) -> Rules:
    """Return `given` with the rule files that the context of `step` names.

    A folder is a style; a YAML file is a lexicon or, for a step about tone, a style; a JSON
    file is a classifier, and a text file a list of words.

    Raises:
        InvalidDocument: The context names a rule file that is not there.
    """
    found: dict[str, str] = {}
    unused: list[str] = []
    for name in dict.fromkeys(_places(step.context)):
        place = beside / name
        kind = _kind(place, step.checks)
        if kind is None:
            unused.append(_unused(name, place))
        elif not place.exists():
            msg = f"the context of step {step.id!r} names {name!r}, which is not at {place}"
            raise InvalidDocument(msg)
        elif getattr(given, kind) is not None or kind in found:
            other = Path(getattr(given, kind) or found[kind]).name
            unused.append(f"{_named(name)} and is not used: {other!r} is gone by instead")
        else:
            found[kind] = str(place.resolve())
    hosts = tuple(dict.fromkeys((*given.allow_hosts, *step.allow_hosts)))
    return given.model_copy(update={**found, "allow_hosts": hosts, "unused": tuple(unused)})


def open_checkers(
    rules: Rules, names: tuple[CheckName, ...], proxies: Proxies = NO_PROXIES
) -> Mapping[CheckName, Checker]:
    """Return the checkers called `names` that go by `rules`.

    Raises:
        InvalidDocument: A file of the rules is not what it should be.
    """
    return {name: _opened(name, rules, proxies) for name in names}


def _opened(name: CheckName, rules: Rules, proxies: Proxies) -> Checker:
    match name:
        case "tone":
            return ToneChecker(
                load_style(Path(rules.style)) if rules.style else _STARTER_RULES()
            )
        case "compliance":
            lexicon = load_lexicon(Path(rules.lexicon)) if rules.lexicon else _STARTER_LEXICON()
            model = load_model(Path(rules.classifier)) if rules.classifier else _STARTER_MODEL()
            return ComplianceChecker(lexicon, model)
        case "links":
            root = Path(rules.root) if rules.root else None
            door = door_for(rules.allow_hosts)
            return LinkChecker(root=root, offline=rules.offline, door=door, proxies=proxies)
        case "spelling":
            listed = read_accept_list(Path(rules.accept_list)) if rules.accept_list else ()
            return SpellingChecker(accept=frozenset((*listed, *rules.accept)))


def _places(context: str) -> Iterator[str]:
    """Yield what `context` names that looks like a file or a folder."""
    for found in _NAMED.finditer(context):
        name = found[0].rstrip(".")
        if name.startswith("//"):  # the rest of a URL
            continue
        ending = Path(name).suffix.lower()
        known = ending in _SUFFIXES or ending in _DOCUMENTS
        if known or name.endswith("/") or ("/" in name and _ENDING.search(name)):
            yield name


def _named(name: str) -> str:
    return f"{name!r} is named in the context"


def _unused(name: str, place: Path) -> str:
    if not place.exists():
        return f"{_named(name)} and is not there, so that it was not used"
    return f"{_named(name)} and is not used: no check of this step can go by such a file"


def _kind(place: Path, checks: tuple[CheckName, ...]) -> str | None:
    """Return which rules the file is; None if no checker of this step goes by it."""
    match place.suffix:
        case ".yaml" | ".yml" if "compliance" in checks:
            return "lexicon"
        case ".json" if "compliance" in checks:
            return "classifier"
        case ".txt" if "spelling" in checks:
            return "accept_list"
        case "" | ".yaml" | ".yml" if "tone" in checks:
            return "style"
        case _:
            return None
