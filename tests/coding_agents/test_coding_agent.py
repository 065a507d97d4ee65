"""What the executor around a preset does with keys, leftovers and endings of the tool."""

import json
from pathlib import Path

import anyio
import pytest

from agent_run.contract.brief import Brief
from agent_run.contract.manifest import Manifest
from agent_run.errors import ModelMissing
from agent_run.executors.coding_agent import CodingAgent
from agent_run.executors.presets.shapes import (
    Assignment,
    Invocation,
    Observation,
    Output,
    Preset,
    Program,
)
from agent_run.ports.executor import Job, Work
from agent_run.ports.fence import Limits
from agent_run.workspace.fence import open_fence

KEY = "sk-very-secret-0123456789"


def invocation(assignment: Assignment) -> Invocation:
    return Invocation(
        argv=assignment.program.argv,
        cwd=assignment.workspace,
        env={"PATH": "/usr/bin:/bin"},
        secrets={"MODEL_KEY": "MY_KEY"},
        files={},
        folders=(),
        results={"trajectory": assignment.home / "trajectory.json"},
        readable=(),
        hosts=(),
    )


def read_events(output: Output) -> Observation:
    """Read a trajectory that says everything, or none."""
    told = json.loads(output.files.get("trajectory", "{}"))
    return Observation(
        record={"status": "done", "notes": told["notes"]} if "notes" in told else None,
        tokens_in=told.get("tokens", 0),
        transcript=tuple(output.stdout.splitlines()),
        error=None if output.exit_code == 0 else "the tool says why",
    )


def run(place: Path, script: str, *, key: str | None = KEY, seconds: float = 30) -> Work:
    """Run `script` as if it were the command line of a coding agent."""
    workspace, folder = place / "workspace", place / "job"
    workspace.mkdir()
    folder.mkdir()
    agent = CodingAgent(
        "tool",
        Preset("tool", "tool", invocation, read_events),
        find=lambda: Program(
            ("/bin/sh", "-c", f"trajectory={folder}/home/trajectory.json;{script}")
        ),
        secret={"MY_KEY": key}.get,
    )
    job = Job(
        brief=Brief(
            task_id="t-1", run_id="r-1", manifest=Manifest(task_id="t-1", objective="o")
        ),
        workspace=workspace,
        folder=folder,
        fence=open_fence("prefer"),
        limits=Limits(wall_sec=seconds),
    )
    return anyio.run(agent.run, job)


@pytest.mark.parametrize("key", [None, ""])
def test_a_key_that_is_not_set_is_named_before_anything_starts(
    key: str | None, tmp_path: Path
) -> None:
    with pytest.raises(ModelMissing, match="'tool' needs a key in 'MY_KEY', which is not set"):
        run(tmp_path, "touch begun", key=key)

    assert not (tmp_path / "workspace" / "begun").exists()


def test_a_key_that_the_agent_prints_is_written_down_nowhere(tmp_path: Path) -> None:
    script = """
        echo "key $MODEL_KEY"; echo "key $MODEL_KEY" >&2
        echo "{\\"notes\\": \\"key $MODEL_KEY\\"}" > "$trajectory"
    """

    work = run(tmp_path, script)

    assert work.record is not None
    assert work.record.notes == "key [MODEL_KEY]"
    assert KEY not in repr(work)
    assert b"key [MODEL_KEY]" in work.seen.transcript


def test_the_trajectory_of_a_long_run_is_read(tmp_path: Path) -> None:
    script = """
        { printf '{"notes": "done", "long": "'; head -c 3000000 /dev/zero | tr '\\0' x
          printf '"}'; } > "$trajectory"
    """

    work = run(tmp_path, script)

    assert work.record is not None
    assert work.record.notes == "done"
    assert work.invalid == ""


def test_a_link_left_in_place_of_a_result_is_named_and_not_followed(tmp_path: Path) -> None:
    work = run(tmp_path, 'ln -s /etc/passwd "$trajectory"')

    assert work.record is None
    assert work.invalid.startswith("trajectory.json: cannot be read")


def test_a_tool_that_does_not_count_its_requests_made_at_least_one(tmp_path: Path) -> None:
    work = run(tmp_path, 'echo \'{"tokens": 700}\' > "$trajectory"')

    assert work.seen.tokens_used == 700
    assert work.seen.requests_made == 1
    assert work.seen.cost_usd is None


def test_a_tool_that_gives_up_is_quoted(tmp_path: Path) -> None:
    work = run(tmp_path, "exit 3")

    assert work.seen.error == "the tool says why"
    assert work.seen.exit_code == 3


def test_a_tool_that_is_stopped_is_quoted_beside_what_stopped_it(tmp_path: Path) -> None:
    work = run(tmp_path, "sleep 60", seconds=1)

    assert work.seen.ended == "timeout"
    assert work.seen.error.endswith("; the tool says why")
