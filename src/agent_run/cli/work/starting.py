"""The work of `init`: what a folder needs to begin with; nothing there is overwritten."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.door import configured
from agent_run.errors import Unfit
from agent_run.wiring.opening import open_desk
from agent_run.wiring.settings import FILE, STATE, current_folder

SETTINGS: Final = """\
# Settings of agent-run for this folder; everything here is optional.
# AGENT_RUN_* variables win over this file, flags win over both.
# `agent-run config show --origin` tells where each value came from.

# store = "postgresql://user@host/database"   # default: .agent-run/ledger.db
# owner = "ada"                  # who claims when nobody is named
# executor = "fixer"             # who executes when a manifest names nobody
# fence = "require"              # require | prefer | off: what if the kernel cannot hold it
# dirty = "refuse"               # refuse | carry: uncommitted changes when work begins
# executor_timeout = "1h"
# day_budget_usd = 20.0

# [executors.fixer]
# preset = "claude"              # claude, codex, opencode, aider or mini-swe-agent
# model = "..."
# pass_env = ["ANTHROPIC_API_KEY"]

# [executors.script]
# command = "python3 tools/fix.py"
"""
EXAMPLE: Final = """\
# One task: what is asked for, what may be written, how it will be judged.
# Check it with `agent-run check tasks/example.yaml`, post it with `agent-run post`.
task_id: example
objective: Say in README.md what this project is for
allowed_paths: [README.md]
constraints:
  - At most three sentences
verification:
  - test -s README.md
handoff_notes:
  - Readers know nothing about the project
claim_ttl: 20m
"""


def init(speech: Speech, *, dry_run: bool) -> int:
    """Write what is missing, and say of each file whether it was written or kept."""
    here = current_folder()
    written: list[str] = []
    kept: list[str] = []
    for file, text in _files(speech, here):
        (kept if file.exists() else written).append(str(file.relative_to(here)))
        if not dry_run and not file.exists():
            _write(file, text)
    if not dry_run:
        open_desk(configured(speech).settings.store_url).close()
    if dry_run:
        speech.tell("a dry run: nothing was written")
    speech.answer(
        {"written": written, "kept": kept, "dry_run": dry_run},
        [*(f"wrote {name}" for name in written), *(f"kept {name}" for name in kept)],
    )
    if written:
        speech.tell("next: agent-run check tasks, then agent-run post tasks")
    return Exit.DONE


def _files(speech: Speech, here: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file and what it should hold."""
    origin = Path(configured(speech).origins["root"])
    if origin == here / "pyproject.toml":
        # A file of our own would silently win over the settings that stand there.
        yield origin, ""
    else:
        yield here / FILE, SETTINGS
    yield here / "tasks" / "example.yaml", EXAMPLE
    yield here / STATE / ".gitignore", "*\n"


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except OSError as error:
        msg = f"{str(file)!r} cannot be written: {error.strerror}"
        raise Unfit(msg) from error
