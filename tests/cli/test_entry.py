"""The front door in real processes: what it loads, how it ends, what two of them do."""

import errno
import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_run.cli.app import _ended
from agent_run.version import __version__
from tests.support.command_line import Ask

AGENT_RUN = str(Path(sys.executable).parent / "agent-run")


def _loaded(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> set[str]:
    """Return the top-level packages that a command line imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agent_run", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, **(env or {})},
        timeout=60,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


def test_the_version_is_told_without_loading_anything(start: Ask, folder: Path) -> None:
    assert start("--version").out == f"agent-run {__version__}\n"
    assert _loaded(folder, "--version").isdisjoint(
        {"click", "pydantic", "yaml", "rich", "json"}
    )
    assert start("--json", "--version").out == f"agent-run {__version__}\n"


@pytest.mark.parametrize("arguments", [("--help",), ("claim", "--help"), ("ledger", "-h")])
def test_help_loads_nothing_heavy(folder: Path, arguments: tuple[str, ...]) -> None:
    heavy = {"pydantic", "yaml", "rich", "sqlite3", "anyio", "psycopg"}

    assert _loaded(folder, *arguments).isdisjoint(heavy)


def test_completion_loads_nothing_heavy_and_knows_commands_and_options(
    start: Ask, folder: Path
) -> None:
    words = {"_AGENT_RUN_COMPLETE": "bash_complete", "COMP_WORDS": "agent-run cl"}
    options = {**words, "COMP_WORDS": "agent-run claim --t", "COMP_CWORD": "2"}

    answer = start(env={**words, "COMP_CWORD": "1"})

    assert answer.out.split() == ["plain,claim"]
    assert start(env=options).out.split() == ["plain,--ttl"]
    assert _loaded(folder, env=options).isdisjoint({"pydantic", "yaml", "rich", "sqlite3"})


def test_status_as_json_loads_neither_yaml_nor_rich(start: Ask, folder: Path) -> None:
    start("post", "repo-142.yaml")

    loaded = _loaded(folder, "status", "--json")

    assert loaded.isdisjoint({"yaml", "rich", "anyio", "psycopg"})
    assert "click" in loaded


def test_without_a_command_the_help_is_shown_on_stderr(start: Ask) -> None:
    answer = start()

    assert (answer.code, answer.out) == (2, "")
    assert "Hand over:" in answer.err


def test_options_may_stand_before_or_after_the_command(start: Ask) -> None:
    elsewhere = "sqlite:///elsewhere.db"
    start("post", "repo-142.yaml", "--store", elsewhere)

    before = start("--json", "--store", elsewhere, "status")
    after = start("status", "--json", "--store", elsewhere)

    assert before.out == after.out
    assert len(json.loads(after.out)["tasks"]) == 1
    assert start("status", "--json", env={"AGENT_RUN_STORE": elsewhere}).out == after.out


def test_quiet_says_only_errors(start: Ask) -> None:
    assert start("status", "-q").err == ""
    assert start("-q", "show", "nothing").err.startswith("agent-run: no task 'nothing'")


def test_a_mistyped_command_gets_a_suggestion(start: Ask) -> None:
    assert "'claim'" in start("clam").err


def test_a_crash_is_one_line_and_a_traceback_on_demand(start: Ask, folder: Path) -> None:
    (folder / "sitecustomize.py").write_text(
        "import agent_run.cli.work.showing as s\ns.opened = None\n"
    )
    env = {"PYTHONPATH": str(folder)}

    plain, told = start("show", "x", env=env), start("show", "x", "-v", env=env)

    assert plain.code == told.code == 1
    assert "Traceback" not in plain.err
    assert "-v" in plain.err
    assert "Traceback" in told.err


def test_a_reader_that_leaves_early_gets_no_complaint(start: Ask, folder: Path) -> None:
    steps = [{"task_id": f"t{number}", "objective": "x" * 500} for number in range(400)]
    (folder / "plan.json").write_text(json.dumps({"plan_id": "big", "steps": steps}))
    start("post", "plan.json")
    for command in ("ledger", "ledger --jsonl", "status --all", "show t1", "--help"):
        done = subprocess.run(
            ["bash", "-c", f"{AGENT_RUN} {command} | true; echo ${{PIPESTATUS[0]}}"],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            timeout=60,
        )
        assert done.stderr == "", command
        # Whether the reader is gone before the writing begins is up to the scheduler.
        assert done.stdout.strip() in {"0", "141"}, command


def _interrupted(process: "subprocess.Popen[str]") -> str:
    """Interrupt until it ends, as a person would, and return what it says.

    An interrupt that comes while Python removes garbage is lost in Python itself.
    """
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=15)[1]
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    return process.communicate()[1]


def test_an_interrupt_is_130(start: Ask, folder: Path) -> None:
    start("post", "repo-142.yaml")
    process = subprocess.Popen(
        [AGENT_RUN, "ledger", "--follow", "--jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    with process:
        assert process.stdout is not None
        first = process.stdout.readline()
        err = _interrupted(process)

    assert json.loads(first)["kind"] == "task_posted"
    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_follower_sees_what_another_process_writes(start: Ask, folder: Path) -> None:
    start("post", "repo-142.yaml")
    process = subprocess.Popen(
        [AGENT_RUN, "ledger", "--follow", "--jsonl"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        start("claim", "repo-142", "--owner", "bob")
        second = process.stdout.readline()
        process.terminate()

    assert json.loads(second)["event"]["owner"] == "bob"


def test_of_two_processes_one_gets_the_claim(start: Ask, folder: Path) -> None:
    start("post", "repo-142.yaml")
    racing = [
        subprocess.Popen(
            [AGENT_RUN, "claim", "--next", "--owner", f"racer-{number}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )
        for number in range(4)
    ]

    codes = sorted(process.wait(timeout=60) for process in racing)

    assert codes == [0, 5, 5, 5]


def test_on_a_terminal_the_table_is_drawn_and_the_text_still_harmless(
    start: Ask, folder: Path
) -> None:
    start("post", "repo-142.yaml")
    start("claim", "repo-142", "--owner", "[red]bob\x1b[5m")

    plain = _on_a_terminal(folder, "status", "--no-color")
    bare = _on_a_terminal(folder, "status", env={"NO_COLOR": "1"})
    coloured = _on_a_terminal(folder, "status")

    assert "─" in plain
    assert "\x1b[36m" in coloured
    for shown in (plain, bare):
        assert "\x1b[36m" not in shown
    for shown in (plain, bare, coloured):
        assert "\x1b[5m" not in shown
        assert "[red]bob" in shown


def _on_a_terminal(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    ours, theirs = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR"}}
    process = subprocess.Popen(
        [AGENT_RUN, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={**clean, "TERM": "xterm-256color", "COLUMNS": "160", **(env or {})},
    )
    os.close(theirs)
    shown = b""
    with process:
        while select.select([ours], [], [], 60)[0]:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # Linux says so when the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_what_the_machine_refuses_is_one_sentence_and_no_crash(
    capsys: pytest.CaptureFixture[str], number: int
) -> None:
    refused = OSError(number, os.strerror(number), "/somewhere/ledger.db")

    code = _ended(refused, frozenset())

    assert code == 3
    assert (
        capsys.readouterr().err == f"agent-run: /somewhere/ledger.db: {os.strerror(number)}\n"
    )


def test_a_fault_of_ours_is_not_taken_for_one_of_the_machine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = _ended(FileNotFoundError(errno.ENOENT, "No such file", "x"), frozenset())

    assert code == 1
    assert "unexpected FileNotFoundError" in capsys.readouterr().err
