"""Puts an action into the words of the tools that the asking command line offers.

Some tools want a file read before they change it, so one action may take several calls.
Where no tool fits, the action becomes text: search-and-replace blocks, or a shell block.
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from tests.support.model_server.ask import Ask, Json
from tests.support.model_server.scenario import (
    Action,
    Edit,
    Finish,
    Refuse,
    Shell,
    Turns,
    Write,
)

RECORD_TOOLS: Final = ("StructuredOutput", "final_result")
SUBMIT: Final = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_REPLACE: Final = """
import pathlib, sys
path, old, new = sys.argv[1:]
text = pathlib.Path(path).read_text()
assert old in text, "no such text"
pathlib.Path(path).write_text(text.replace(old, new, 1))
"""
_SHELL_BLOCK: Final = re.compile(r"```(mswea_bash_command|bash)\n")


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call: an object of arguments, or free text for a custom tool."""

    name: str
    arguments: Json
    form: Literal["function", "custom"] = "function"
    text: str = ""
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Say:
    """Plain text, which ends the conversation for most callers."""

    text: str


Reply = Call | Say | Refuse


def reply_to(ask: Ask, script: Turns | Action) -> Reply:
    """Return what the model says at this turn of the conversation."""
    actions = script.actions if isinstance(script, Turns) else (script,)
    if not ask.tools and "SEARCH/REPLACE" in ask.system + ask.prompt:
        return _all_in_one_text(actions)
    steps = [step for action in actions for step in _steps(ask, action)]
    return steps[min(ask.turn, len(steps) - 1)]


def _all_in_one_text(actions: tuple[Action, ...]) -> Reply:
    """Return every edit as one text: this caller asks once, and has no shell."""
    said: list[str] = []
    for action in actions:
        match action:
            case Refuse():
                return action
            case Edit(path, old, new):
                said.append(_search_replace(path, old, new))
            case Write(path, text):
                said.append(_search_replace(path, "", text))
            case Finish(text):
                said.append(text)
            case Shell():
                continue
    return Say("\n".join(said))


def _steps(ask: Ask, action: Action) -> list[Reply]:
    match action:
        case Refuse():
            return [action]
        case Shell(command):
            return [_shell(ask, command)]
        case Edit():
            return _edit(ask, action)
        case Write():
            return _write(ask, action)
        case Finish():
            return [_finish(ask, action)]


def _shell(ask: Ask, command: str) -> Reply:
    spoken: Mapping[str, Json] = {
        "Bash": {"command": command, "description": "Run it"},
        "bash": {"command": command, "description": "Run it"},
        "exec_command": {"cmd": command},
        "shell_command": {"command": command},
        "shell": {"command": ["bash", "-c", command]},
    }
    call = _first_offered(ask, spoken)
    if call is not None:
        return call
    block = _SHELL_BLOCK.search(ask.system + ask.prompt)
    fence = block.group(1) if block else "bash"
    return Say(f"THOUGHT: the next step.\n\n```{fence}\n{command}\n```\n")


def _edit(ask: Ask, edit: Edit) -> list[Reply]:
    if "Edit" in ask.tools:
        change = {"old_string": edit.old, "new_string": edit.new}
        read = Call("Read", {"file_path": edit.path})
        return [read, Call("Edit", {"file_path": edit.path, **change})]
    if "edit" in ask.tools:
        change = {"oldString": edit.old, "newString": edit.new}
        read = Call("read", {"filePath": edit.path})
        return [read, Call("edit", {"filePath": edit.path, **change})]
    argv = ["python3", "-c", _REPLACE, edit.path, edit.old, edit.new]
    return _patched(ask, edit) or [_shell(ask, shlex.join(argv))]


def _patched(ask: Ask, edit: Edit) -> list[Reply] | None:
    tool = ask.tools.get("apply_patch")
    if tool is None:
        return None
    lines = [f"-{line}" for line in edit.old.splitlines()]
    lines += [f"+{line}" for line in edit.new.splitlines()]
    patch = "\n".join(
        ["*** Begin Patch", f"*** Update File: {edit.path}", "@@", *lines, "*** End Patch", ""]
    )
    return [Call("apply_patch", {"input": patch}, tool.form, patch, tool.namespace)]


def _write(ask: Ask, write: Write) -> list[Reply]:
    spoken: Mapping[str, Json] = {
        "Write": {"file_path": write.path, "content": write.text},
        "write": {"filePath": write.path, "content": write.text},
    }
    command = f"printf %s {shlex.quote(write.text)} > {shlex.quote(write.path)}"
    return [_first_offered(ask, spoken) or _shell(ask, command)]


def _finish(ask: Ask, finish: Finish) -> Reply:
    record = finish.record
    if record is not None:
        call = _first_offered(ask, dict.fromkeys(RECORD_TOOLS, record))
        if call is not None:
            return call
    last = finish.text if record is None or not _wants_json(ask) else json.dumps(record)
    if SUBMIT in ask.system + ask.prompt:
        return _shell(ask, f"echo {SUBMIT} && echo {shlex.quote(last)}")
    return Say(last)


def _wants_json(ask: Ask) -> bool:
    return ask.output_schema is not None or "JSON Schema" in ask.prompt


def _first_offered(ask: Ask, spoken: Mapping[str, Json]) -> Call | None:
    for name, arguments in spoken.items():
        tool = ask.tools.get(name)
        if tool is not None:
            return Call(name, arguments, tool.form, namespace=tool.namespace)
    return None


def _search_replace(path: str, old: str, new: str) -> str:
    old, new = (text if not text or text.endswith("\n") else text + "\n" for text in (old, new))
    return f"{path}\n```\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"
