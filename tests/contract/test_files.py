"""Files that a user names: whatever lies there, the answer comes at once."""

import os
import socket
from pathlib import Path

import pytest

from agent_run.contract.files import content_of, text_of
from agent_run.contract.plan import Plan
from agent_run.errors import InvalidDocument


def told(file: Path, *, most: int | None = None) -> str:
    with pytest.raises(InvalidDocument) as refused:
        content_of(file, most=most)
    return str(refused.value).removeprefix(f"{file}: ")


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")

    assert content_of(tmp_path / "a") == b"abc"
    assert content_of(tmp_path / "a", most=3) == b"abc"


@pytest.mark.timeout(20)
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")

    assert told(tmp_path / "pipe") == "is a pipe, expected a file"
    assert told(tmp_path / "socket") == "is a socket, expected a file"
    assert told(tmp_path) == "is a folder, expected a file"
    assert told(Path("/dev/zero")) == "is a device, expected a file"
    assert told(tmp_path / "none") == "cannot be read: No such file or directory"
    assert told(tmp_path / "a\0b") == "cannot be read: embedded null byte"


def test_a_pipe_behind_a_link_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "plan.yaml").symlink_to("pipe")

    with pytest.raises(InvalidDocument, match="is a pipe, expected a file"):
        Plan.load(tmp_path / "plan.yaml")


def test_a_large_file_is_told_by_its_true_size(tmp_path: Path) -> None:
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(60_000_000)

    said = told(tmp_path / "huge.yaml", most=1_048_576)

    assert said == "is 60000000 bytes long, expected at most 1048576"


def test_text_that_is_not_utf_8_is_refused_with_its_byte(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfcaf\xc3\xa9")
    (tmp_path / "b").write_bytes(b"caf\xe9")

    assert text_of(tmp_path / "a") == "café"
    with pytest.raises(InvalidDocument, match=r"is not UTF-8 at byte 3 \(0xe9\)"):
        text_of(tmp_path / "b")


@pytest.mark.timeout(20)
def test_a_pipe_that_the_shell_opened_for_us_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"abc")
    os.close(writing)

    content = content_of(Path(f"/dev/fd/{reading}"), most=10)

    os.close(reading)
    assert content == b"abc"
