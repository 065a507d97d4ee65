"""The demo, as a stranger sees it: what it prints, what it leaves behind, how long it takes."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_run.cli.demo.cast import ALL
from agent_run.wiring.opening import open_desk

pytestmark = pytest.mark.slow

TRANSCRIPT = """\
[demo]    repo-142 is posted: Add rate-limit backoff to the GitHub sync worker
[demo]    may be written: src/github_sync.py, tests/test_github_sync.py, and nothing else
[demo]    executor-1 fixes it, and wanders out of scope
[claim]   task=repo-142 owner=executor-1 ttl=20m attempt=1 claim=2
[edit]    src/github_sync.py updated
[refused] 'src/http_tools.py' was added but is not in allowed_paths
[refused] 'src/settings.py' was changed but is not in allowed_paths
[test]    python3 -m unittest discover -q ........ PASS TIME
[test]    python3 -m scripts.smoke_github_sync ........ PASS TIME
[summary] status=needs_review files=1 risks=1
[verify]  scope FAIL  record PASS  commands PASS  -> returned
[demo]    executor-2 fixes nothing, and edits the tests
[claim]   task=repo-142 owner=executor-2 ttl=20m attempt=2 claim=6
[edit]    src/github_sync.py updated
[refused] 'tests/test_rate_limit.py' is protected and was changed
[test]    python3 -m unittest discover -q ........ FAIL TIME
[test]    python3 -m scripts.smoke_github_sync ........ FAIL TIME
[summary] status=done files=1 risks=1
[verify]  scope FAIL  record PASS  commands FAIL  -> returned
[demo]    executor-3 fixes it, and lies in its record
[claim]   task=repo-142 owner=executor-3 ttl=20m attempt=3 claim=9
[edit]    src/github_sync.py updated
[test]    python3 -m unittest discover -q ........ PASS cached
[test]    python3 -m scripts.smoke_github_sync ........ PASS cached
[summary] status=done files=2 risks=0
[verify]  scope PASS  record FAIL  commands PASS  -> returned
[demo]    executor-4 crashes half-way
[claim]   task=repo-142 owner=executor-4 ttl=20m attempt=4 claim=12
[edit]    src/github_sync.py updated
[test]    python3 -m unittest discover -q ........ FAIL TIME
[test]    python3 -m scripts.smoke_github_sync ........ FAIL TIME
[summary] status=failed files=1 risks=0
[verify]  scope PASS  record FAIL  commands FAIL  -> returned
[demo]    executor-5 overstays its claim
[claim]   task=repo-142 owner=executor-5 ttl=1s attempt=5 claim=15
[note]    nothing was heard of executor-5 for longer than its claim
[demo]    executor-6 takes over, fixes it, and says what it did
[claim]   task=repo-142 owner=executor-6 ttl=20m attempt=6 claim=18
[edit]    src/github_sync.py updated
[edit]    tests/test_github_sync.py updated
[test]    python3 -m unittest discover -q ........ PASS TIME
[test]    python3 -m scripts.smoke_github_sync ........ PASS TIME
[summary] status=needs_review files=2 risks=1
[verify]  scope PASS  record PASS  commands PASS  -> accepted  agent-run apply repo-142
"""
ENDING = """\
$ agent-run apply repo-142
[apply]   task=repo-142 applied on main as COMMIT
[apply]   src/github_sync.py
[apply]   tests/test_github_sync.py

$ agent-run ledger verify
1 run, every page as it was written

$ agent-run qa DRAFT... --checklist checklist.yaml --key key.jsonl
"""


def demo(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "agent-run"
    return subprocess.run(
        [program, "demo", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(cwd)},
    )


def settled(text: str) -> str:
    """Return what is the same in every run."""
    text = re.sub(r"(PASS|FAIL) \d+\.\ds$", r"\1 TIME", text, flags=re.MULTILINE)
    return re.sub(r" as [0-9a-f]{12}$", " as COMMIT", text, flags=re.MULTILINE)


def test_the_demo_tells_its_story_in_time_and_leaves_nothing_behind(tmp_path: Path) -> None:
    began = time.monotonic()
    done = demo(cwd=tmp_path)
    took = time.monotonic() - began

    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    assert settled(done.stdout).startswith(TRANSCRIPT)
    assert ENDING in settled(done.stdout)
    assert "20 of 21 planted" in done.stdout
    assert took < 30
    assert list(tmp_path.iterdir()) == []


def test_every_executor_but_one_is_refused_for_its_own_reason(tmp_path: Path) -> None:
    done = demo("--json", "-q", cwd=tmp_path)

    told = json.loads(done.stdout)
    outcomes = {row["attempt"]: (row["outcome"], row["why"]) for row in told["attempts"]}
    assert done.stderr == ""
    assert [row["executor"] for row in told["attempts"]] == [part.owner for part in ALL]
    assert outcomes[1] == (
        "refused",
        "scope out_of_scope: src/http_tools.py, src/settings.py",
    )
    assert outcomes[2] == (
        "refused",
        "scope tampered: tests/test_rate_limit.py; commands verification_failed",
    )
    assert outcomes[3] == ("refused", "record record_mismatch: tests/test_github_sync.py")
    assert outcomes[4] == ("refused", "record executor_failed; commands verification_failed")
    assert outcomes[5][0] == "refused"
    assert "claim 15 on task 'repo-142' is not held" in outcomes[5][1]
    assert outcomes[6] == ("accepted", "every gate passed")
    assert told["verified"] is True


def test_what_is_kept_is_a_real_repository_with_the_change_on_its_branch(
    tmp_path: Path,
) -> None:
    done = demo("--keep", cwd=tmp_path)

    (folder,) = tmp_path.iterdir()
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=folder, capture_output=True, text=True, check=True
    )
    desk = open_desk(f"sqlite:///{folder / '.agent-run' / 'ledger.db'}")
    task = desk.run("repo-142").tasks["repo-142"]
    desk.close()
    assert done.returncode == 0
    assert log.stdout.splitlines() == [
        "Add rate-limit backoff to the GitHub sync worker",
        "GitHub sync worker",
    ]
    assert "delay_before" in (folder / "src/github_sync.py").read_text()
    assert (folder / "src/settings.py").read_text() == "TIMEOUT = 30\n"
    assert not (folder / "src/http_tools.py").exists()
    assert task.applied is not None


def test_the_demo_works_without_a_fence_and_says_so_loudly(tmp_path: Path) -> None:
    (tmp_path / "agent-run.toml").write_text('fence = "off"\n')

    done = demo(cwd=tmp_path)

    assert done.returncode == 0
    assert "NO FENCE" in done.stderr
    assert ENDING in settled(done.stdout)
    assert "20 of 21 planted" in done.stdout
