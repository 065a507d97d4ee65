"""Whether a verification command could be run at all, and would prove anything."""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Final

from agent_run.executors.planner.ground import Ground

_BETWEEN: Final = frozenset({"&&", "||", ";", "|", "&"})
_ASSIGNS: Final = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")
_PROVES_NOTHING: Final = frozenset(
    {"true", ":", "echo", "exit", "printf", "pwd", "sleep", "ls"}
)
_OF_THE_SHELL: Final = frozenset({"cd", "test", "[", "!", "set", "export", "grep", "diff"})
_PYTHON: Final = re.compile(r"^python(3(\.\d+)?)?$")
_LIKE_A_PATH: Final = re.compile(
    r"^[\w.-]+(/[\w.-]+)+$|^[\w-]+\.(py|sh|js|ts|toml|json|ya?ml)$"
)
_TWO: Final = 2


def command_faults(command: str, ground: Ground, exists: Callable[[str], bool]) -> list[str]:
    """Name everything that keeps `command` from being a check of this project.

    `exists` says whether a file is there, or will be once the work is done.
    """
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars="();|&<>")
        lexer.whitespace_split = True
        parts = list(_commands(list(lexer)))
    except ValueError as error:
        return [f"cannot be read as a command: {error}"]
    if not parts:
        return ["is empty"]
    faults = [fault for words in parts for fault in _word_faults(words, ground, exists)]
    if all(words[0] in _PROVES_NOTHING for words in parts):
        faults.append("succeeds whatever was done, so it proves nothing")
    return faults


def _commands(words: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in [*words, ";"]:
        if word in _BETWEEN:
            if part:
                yield part
            part = []
        elif part or not _ASSIGNS.match(word):
            part.append(word)


def _word_faults(
    words: list[str], ground: Ground, exists: Callable[[str], bool]
) -> Iterator[str]:
    first = words[0]
    if "/" in first:
        if not exists(first.removeprefix("./")) and not ground.has_program(first):
            yield f"runs {first!r}, which is not there"
    elif first not in _PROVES_NOTHING | _OF_THE_SHELL and not ground.has_program(first):
        yield f"runs {first!r}, which is not installed here"
    rest = words[1:]
    if _PYTHON.match(first) and len(rest) >= _TWO and rest[0] == "-m":
        module = rest[1]
        inside = module.replace(".", "/") + ".py"
        if not ground.has_module(module) and not exists(inside):
            yield f"runs the module {module!r}, which is not there"
        rest = rest[_TWO:]
    for word in rest:
        path = word.partition("::")[0].removeprefix("./").rstrip("/")
        if _LIKE_A_PATH.fullmatch(path) and not exists(path):
            yield f"names {path!r}, which is neither there nor to be created"
