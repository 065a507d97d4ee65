"""Doing what the model asks a tool for, inside the fence, and telling what came of it.

What is told is cut to a length that a model can read, and says so wherever it is cut.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import anyio
from pydantic import JsonValue

from agent_run.contract.paths import Scope, fault_of, matches
from agent_run.errors import ContractError, WorkspaceError
from agent_run.executors.agent.changes import (
    Changes,
    change_of,
    changes_between,
    snapshot,
)
from agent_run.executors.agent.fetching import FETCHER, refusal_of
from agent_run.executors.agent.files import Entry, Files
from agent_run.ports.executor import Job
from agent_run.ports.fence import Finished, Launch

MOST_SHOWN: Final = 20_000
_MOST_HITS: Final = 100
_MOST_LISTED: Final = 500
_MOST_LINES: Final = 600
_LONGEST_LINE: Final = 400
_LONGEST_RUN_SEC: Final = 600
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool gave, and what it changed."""

    text: str
    failed: bool = False
    changes: Changes = field(default_factory=Changes)


@dataclass(frozen=True, slots=True)
class Hands:
    """The tools of one job."""

    job: Job
    workspace: Path
    env: Mapping[str, str]
    readable: tuple[Path, ...]
    home: Path
    ran: list[str] = field(default_factory=list)
    """Every command that was run here, in order."""

    @property
    def files(self) -> Files:
        return Files(self.workspace)

    @property
    def scope(self) -> Scope:
        manifest = self.job.brief.manifest
        scope = Scope(manifest.allowed_paths, manifest.protected_paths)
        return scope.below_folders(self.files.is_folder)

    async def act(self, name: str, arguments: Mapping[str, JsonValue]) -> Outcome:
        """Do it; whatever the model got wrong is told to it, never raised."""
        try:
            if name == "run":
                return await self._run(_text(arguments, "command"), arguments)
            if name == "fetch":
                return await self._fetch(_text(arguments, "url"))
            work = _QUIET[name]
            return await anyio.to_thread.run_sync(work, self, arguments)
        except (ContractError, WorkspaceError) as error:
            return Outcome(str(error), failed=True)

    def read(self, arguments: Mapping[str, JsonValue]) -> Outcome:
        """Return the lines of a file, or the files of a folder."""
        path = _text(arguments, "path").rstrip("/")
        if path in {"", "."} or self.files.is_folder(path):
            return self._listed("" if path == "." else path)
        lines = _decoded(self.files.read(path), path).splitlines()
        first = max(1, _number(arguments, "first_line", 1))
        wanted = min(_MOST_LINES, max(1, _number(arguments, "lines", _MOST_LINES)))
        part = lines[first - 1 : first - 1 + wanted]
        left = len(lines) - (first - 1 + len(part))
        shown = shown_text("\n".join(part))
        return Outcome(shown + (f"\n[{left} lines more]" if left > 0 else ""))

    def _listed(self, path: str) -> Outcome:
        names = [_path_of(one) for one in self.files.entries(path)]
        left = len(names) - _MOST_LISTED
        more = f"\n[{left} files more; name a folder, or search]" if left > 0 else ""
        return Outcome(clean("\n".join(names[:_MOST_LISTED])) + more or "[no files]")

    def search(self, arguments: Mapping[str, JsonValue]) -> Outcome:
        """Return where a text stands, or which files have a name."""
        text, glob = _text(arguments, "text"), _text(arguments, "glob", "**")
        paths = [one for one in map(_path_of, self.files.entries()) if matches(glob, one)]
        hits = paths if not text else self._hits(text, paths)
        left = len(hits) - _MOST_HITS
        more = f"\n[{left} hits more; search for less]" if left > 0 else ""
        return Outcome(clean("\n".join(hits[:_MOST_HITS])) + more or "[nothing found]")

    def _hits(self, text: str, paths: list[str]) -> list[str]:
        hits: list[str] = []
        for path in paths:
            try:
                content = self.files.read(path)
            except WorkspaceError:
                continue  # a link, a pipe or a large file holds nothing to be searched
            if b"\0" in content or text.encode() not in content:
                continue
            for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
                if text in line:
                    hits.append(f"{path}:{number}: {line.strip()[:_LONGEST_LINE]}")
        return hits

    def edit(self, arguments: Mapping[str, JsonValue]) -> Outcome:
        """Replace one text in one file, or create the file."""
        path, old, new = (_text(arguments, key) for key in ("path", "old", "new"))
        there = self.files.exists(path)
        self._refuse_outside(path, in_base=there)
        if not old:
            if there:
                msg = f"{path!r} exists; give the text to replace as `old`"
                raise WorkspaceError(msg)
            content = new.encode()
        else:
            before = _decoded(self.files.read(path), path)
            count = before.count(old)
            if count != 1:
                msg = f"`old` stands {count} times in {path!r}, expected exactly once"
                raise WorkspaceError(msg)
            content = before.replace(old, new).encode()
        self.files.write(path, content)
        done = "changed" if there else "created"
        return Outcome(f"{path} {done}", changes=Changes(files=(change_of(path, content),)))

    def _refuse_outside(self, path: str, *, in_base: bool) -> None:
        fault = fault_of(path)
        if fault:
            raise WorkspaceError(fault)
        standing = self.scope.standing(path, in_base=in_base)
        if standing in {"allowed", "ephemeral"}:
            return
        allowed = ", ".join(self.job.brief.manifest.allowed_paths) or "nothing"
        why = "is protected" if standing == "protected" else f"is not among {allowed}"
        msg = (
            f"{path!r} may not be changed: it {why}; if the task cannot be done without it, "
            "end with final_result, status blocked, and name it in wider_scope"
        )
        raise WorkspaceError(msg)

    async def _run(self, command: str, arguments: Mapping[str, JsonValue]) -> Outcome:
        seconds = min(_LONGEST_RUN_SEC, max(1, _number(arguments, "timeout_sec", 120)))
        leftover = self.scope.is_leftover
        before = await anyio.to_thread.run_sync(snapshot, self.files, leftover)
        self.ran.append(command)
        finished = await self._fenced(("/bin/sh", "-c", command), seconds)
        after = await anyio.to_thread.run_sync(snapshot, self.files, leftover)
        changed = await anyio.to_thread.run_sync(changes_between, before, after, self.files)
        failed = finished.ended != "exited" or bool(finished.exit_code)
        return Outcome(_told(finished), failed=failed, changes=changed)

    async def _fetch(self, url: str) -> Outcome:
        refused = refusal_of(urlsplit(url), self.job.network)
        if refused:
            return Outcome(f"{url!r} may not be fetched: {refused}", failed=True)
        finished = await self._fenced(("python3", "-I", "-c", FETCHER, url), 60)
        failed = finished.ended != "exited" or bool(finished.exit_code)
        return Outcome(_told(finished), failed=failed)

    async def _fenced(self, argv: tuple[str, ...], seconds: float) -> Finished:
        limits = self.job.limits
        wall = min(seconds, limits.wall_sec) if limits.wall_sec else seconds
        launch = Launch(
            argv=argv,
            cwd=self.workspace,
            env=self.env,
            writable=(self.workspace, self.home),
            readable=self.readable,
            network=self.job.network,
            limits=replace(limits, wall_sec=wall),
        )
        return await self.job.fence.run(launch)


_QUIET: Final[Mapping[str, Callable[[Hands, Mapping[str, JsonValue]], Outcome]]] = {
    "read": Hands.read,
    "search": Hands.search,
    "edit": Hands.edit,
}


def clean(text: str) -> str:
    """Return `text` without characters that hide what it says."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.encode(errors="replace").decode())


def shown_text(text: str) -> str:
    """Return as much of `text` as a model is shown, and how much was left out."""
    left = len(text) - MOST_SHOWN
    if left <= 0:
        return clean(text)
    half = MOST_SHOWN // 2
    cut = f"\n[{left} characters are left out here]\n"
    return clean(text[:half]) + cut + clean(text[-half:])


def _told(finished: Finished) -> str:
    parts = [finished.detail or f"exit {finished.exit_code}"]
    if finished.refused_hosts:
        parts.append("refused hosts: " + ", ".join(finished.refused_hosts))
    for name, raw in (("stdout", finished.stdout), ("stderr", finished.stderr)):
        if raw:
            parts.append(f"--- {name}\n{shown_text(raw.decode(errors='replace'))}")
    return "\n".join(parts)


def _decoded(content: bytes, path: str) -> str:
    if b"\0" in content:
        msg = f"{path!r} is not text"
        raise WorkspaceError(msg)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        msg = f"{path!r} is not UTF-8 text"
        raise WorkspaceError(msg) from error


def _path_of(entry: Entry | str) -> str:
    return entry.path if isinstance(entry, Entry) else entry


def _text(arguments: Mapping[str, JsonValue], key: str, default: str | None = None) -> str:
    value = arguments.get(key, default)
    if not isinstance(value, str):
        msg = f"{key} is {value!r}, expected a text"
        raise ContractError(msg)
    return value


def _number(arguments: Mapping[str, JsonValue], key: str, default: int) -> int:
    value = arguments.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{key} is {value!r}, expected a whole number"
        raise ContractError(msg)
    return value
