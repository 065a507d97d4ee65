"""What counts as written to disk by a command, and what was only granted to it."""

from pathlib import Path

import pytest

from agent_run.ports.fence import Launch, Limits
from agent_run.workspace.fence import open_fence

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_large_tool_below_a_private_folder_is_not_counted_as_written(
    tmp_path: Path,
) -> None:
    """The folder of tests lies below `/tmp`, which every command gets empty."""
    tool, work = tmp_path / "tool", tmp_path / "work"
    tool.mkdir()
    work.mkdir()
    (tool / "large").write_bytes(b"x" * (8 << 20))
    launch = Launch(
        argv=("/bin/sh", "-c", "test -s ../tool/large && echo hello > mine"),
        cwd=work,
        env={},
        writable=(work,),
        readable=(tool,),
        limits=Limits(disk_mb=4, wall_sec=30),
    )

    finished = await open_fence("require").run(launch)

    assert (finished.ended, finished.exit_code) == ("exited", 0), finished.detail
    assert (work / "mine").read_text() == "hello\n"


async def test_what_a_command_writes_itself_is_counted(tmp_path: Path) -> None:
    launch = Launch(
        argv=(
            "/bin/sh",
            "-c",
            "for n in 1 2 3; do head -c 2000000 /dev/zero > f$n; done; sleep 9",
        ),
        cwd=tmp_path,
        env={},
        writable=(tmp_path,),
        limits=Limits(disk_mb=4, wall_sec=30),
    )

    finished = await open_fence("require").run(launch)

    assert finished.ended == "disk"
