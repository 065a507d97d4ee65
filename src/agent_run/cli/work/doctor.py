"""The work of `doctor`: try what is needed here, and say how to fix what is missing."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Final, Literal

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.door import absent, configured
from agent_run.errors import AgentRunError
from agent_run.ledger.words import counted
from agent_run.ports.fence import FenceReport
from agent_run.wiring.opening import open_desk
from agent_run.wiring.settings import Configured

AGENTS: Final = ("claude", "codex", "opencode", "aider", "mini")
EXTRAS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "qa": ("checking drafts", ("codespell_lib", "httpcore", "httpx", "regex")),
    "models": ("asking language models", ("pydantic_ai", "splintr")),
    "anthropic": ("models of Anthropic", ("anthropic",)),
    "openai": ("models of OpenAI and all that speak like it", ("openai",)),
    "otel": (
        "sending telemetry",
        ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    ),
    "postgres": ("a shared ledger", ("psycopg", "psycopg_pool")),
}
"""Extra of the package -> what it is for, and the modules that come with it."""
_OLDEST_GIT: Final = (2, 30)
_OLDEST_SQLITE: Final = (3, 35)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "note", "missing"]
    """`note` is good to know; `missing` keeps the tool from working."""
    says: str
    fix: str = ""


def doctor(speech: Speech) -> int:
    """Look at everything, and exit with 3 if something needed is missing."""
    findings = [finding for look in _LOOKS for finding in look(speech)]
    sick = any(finding.state == "missing" for finding in findings)
    if speech.as_json:
        listed = [asdict(finding) for finding in findings]
        speech.object({"ok": not sick, "findings": listed})
    else:
        rows = [(found.name, found.state, found.says, found.fix) for found in findings]
        speech.table(("WHAT", "STATE", "FOUND", "HOW TO FIX IT"), rows)
    if sick:
        speech.warn("something that is needed is missing")
    return Exit.UNFIT if sick else Exit.DONE


def _python(speech: Speech) -> Iterator[Finding]:
    yield Finding("python", "ok", ".".join(map(str, sys.version_info[:3])))


def _git(speech: Speech) -> Iterator[Finding]:
    fix = "install git 2.30 or newer"
    program = shutil.which("git")
    if program is None:
        yield Finding("git", "missing", "not on PATH", fix)
        return
    said = subprocess.run(  # noqa: S603 - the user's own git, with fixed arguments
        [program, "--version"], capture_output=True, text=True, check=False, timeout=20
    )
    version = said.stdout.strip().removeprefix("git version ")
    known = _numbers(version) >= _OLDEST_GIT
    yield Finding("git", "ok" if known else "missing", version, "" if known else fix)


def _sqlite(speech: Speech) -> Iterator[Finding]:
    # Only asked for its version: nothing but the store speaks SQL.
    version: str = import_module("sqlite3").sqlite_version
    known = _numbers(version) >= _OLDEST_SQLITE
    fix = "" if known else "use a Python that is built with SQLite 3.35 or newer"
    yield Finding("sqlite", "ok" if known else "missing", version, fix)


def _settings(speech: Speech) -> Iterator[Finding]:
    try:
        found = configured(speech)
    except AgentRunError as error:
        yield Finding("settings", "missing", str(error), "mend the file or the variable")
        return
    yield Finding("settings", "ok", found.origins["root"])
    for name in found.unknown:
        yield Finding("settings", "note", f"{name} is no setting of ours", "unset it")
    yield from _ledger(found)


def _ledger(found: Configured) -> Iterator[Finding]:
    url = found.settings.store_url
    if absent(url):
        yield Finding("ledger", "note", f"none yet at {url}", "agent-run init makes one")
        return
    try:
        desk = open_desk(url)
    except AgentRunError as error:
        yield Finding("ledger", "missing", str(error), "check --store and AGENT_RUN_STORE")
        return
    try:
        broken = list(desk.verify())
        runs = len(desk.runs())
    except AgentRunError as error:
        yield Finding("ledger", "missing", str(error), "restore the ledger from a backup")
        return
    finally:
        desk.close()
    if broken:
        said = f"{counted(len(broken), 'place')} not as it was written"
        yield Finding("ledger", "missing", said, "agent-run ledger verify names each of them")
    else:
        yield Finding("ledger", "ok", f"{counted(runs, 'run')}, every page as it was written")


def _extras(speech: Speech) -> Iterator[Finding]:
    for name, (use, modules) in EXTRAS.items():
        lacking = [module for module in modules if not _importable(module)]
        if not lacking:
            yield Finding(name, "ok", f"installed, for {use}")
            continue
        fix = f"only for {use}: pip install 'agent-run[{name}]'"
        yield Finding(name, "note", f"{', '.join(lacking)} not installed", fix)


def _importable(module: str) -> bool:
    """Say whether a module is there, without running it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package it is in
        return False


def _fence(speech: Speech) -> Iterator[Finding]:
    # Loaded late: it tries the kernel, which no other command here needs.
    probe: Callable[[], FenceReport] = import_module("agent_run.workspace.fence").probe
    try:
        report = probe()
    except (AgentRunError, OSError) as error:
        yield Finding("fence", "note", str(error), _FENCE_FIX)
        return
    weak = report.kind == "none"
    abi = f", Landlock version {report.abi}" if report.abi else ""
    yield Finding(
        "fence", "note" if weak else "ok", report.kind + abi, _FENCE_FIX if weak else ""
    )
    if speech.verbose:
        for lack in report.lacks:
            yield Finding("fence", "note", lack)


def _agents(speech: Speech) -> Iterator[Finding]:
    for name in AGENTS:
        program = shutil.which(name)
        if program:
            yield Finding(name, "ok", program)
        else:
            yield Finding(name, "note", "not on PATH", "only needed to execute with it")


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(maxsplit=1)[0].split(".") if version else []
    return tuple(int(part) for part in parts if part.isdigit())


_FENCE_FIX: Final = (
    "use a Linux kernel with Landlock or user namespaces; without one, executors run unheld"
)
_LOOKS: Final = (_python, _git, _sqlite, _settings, _extras, _fence, _agents)
