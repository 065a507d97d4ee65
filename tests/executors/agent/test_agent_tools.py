"""The tools stay in the workspace, in scope, and say what they leave out."""

import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from agent_run.errors import WorkspaceError
from agent_run.executors.agent.fetching import refusal_of
from agent_run.executors.agent.files import Files
from tests.executors.agent.working import Bench, bench, turn


@pytest.fixture
def place(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def test_a_file_is_read_in_parts_and_says_what_is_left(place: Bench) -> None:
    (place.workspace / "calc.py").write_text("".join(f"line {n}\n" for n in range(1, 1_001)))

    first, second = place.seen(
        turn("read", path="calc.py"), turn("read", path="calc.py", first_line=990, lines=5)
    )

    assert first.startswith("line 1\n")
    assert first.endswith("[400 lines more]")
    assert second == "line 990\nline 991\nline 992\nline 993\nline 994\n[6 lines more]"


def test_long_lines_are_cut_and_say_so(place: Bench) -> None:
    (place.workspace / "calc.py").write_text("x" * 30_000)

    assert "[10000 characters are left out here]" in place.seen(turn("read", path="calc.py"))[0]


def test_a_folder_is_listed(place: Bench) -> None:
    (place.workspace / ".git").mkdir()
    (place.workspace / ".git" / "config").write_text("secret")

    said = place.seen(turn("read", path=""), turn("read", path="tests/"))

    assert said == ["calc.py\ntests/test_calc.py", "tests/test_calc.py"]


def test_a_text_and_a_name_are_found(place: Bench) -> None:
    by_text, by_name, nothing = place.seen(
        turn("search", text="return"),
        turn("search", text="", glob="**/test_*.py"),
        turn("search", text="return", glob="tests/**"),
    )

    assert by_text == "calc.py:2: return a - b"
    assert by_name == "tests/test_calc.py"
    assert nothing == "[nothing found]"


def test_an_edit_needs_one_exact_place(place: Bench) -> None:
    none, many, there, fresh = place.seen(
        turn("edit", path="calc.py", old="a * b", new=""),
        turn("edit", path="calc.py", old="a", new=""),
        turn("edit", path="calc.py", old="", new="x"),
        turn("edit", path="sub/new.py", old="", new="x = 1\n"),
        allowed_paths=["calc.py", "sub/**"],
    )

    assert "stands 0 times" in none
    assert "times in 'calc.py'" in many
    assert "exists" in there
    assert fresh == "sub/new.py created"
    assert (place.workspace / "sub" / "new.py").read_text() == "x = 1\n"


def test_an_edit_keeps_the_mode_of_the_file(place: Bench) -> None:
    (place.workspace / "calc.py").chmod(0o755)

    place.seen(turn("edit", path="calc.py", old="a - b", new="a + b"))

    assert (place.workspace / "calc.py").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("path", ["other.py", "tests/test_calc.py", "pyproject.toml"])
def test_an_edit_out_of_scope_is_refused_with_a_way_out(place: Bench, path: str) -> None:
    (place.workspace / "pyproject.toml").write_text("x")

    said = place.seen(turn("edit", path=path, old="", new="x"))[0]

    assert "may not be changed" in said
    assert "wider_scope" in said


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../job/x", "a/../../x", ".git/config", "a\0b"]
)
@pytest.mark.parametrize("tool", ["read", "edit"])
def test_a_path_that_leaves_the_workspace_is_refused(
    place: Bench, path: str, tool: str
) -> None:
    call = turn(tool, path=path, old="", new="x") if tool == "edit" else turn(tool, path=path)

    said = place.seen(call, allowed_paths=["**"])[0]

    assert "path" in said
    assert "root:" not in said


def test_no_link_is_followed_out_of_the_workspace(place: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("the key")
    (place.workspace / "link").symlink_to(outside / "secret")
    (place.workspace / "folder").symlink_to(outside)
    os.mkfifo(place.workspace / "pipe")

    said = place.seen(
        turn("read", path="link"),
        turn("read", path="folder/secret"),
        turn("read", path="pipe"),
        turn("search", text="the key"),
        turn("edit", path="folder/new", old="", new="x"),
        turn("edit", path="link", old="the key", new="x"),
        allowed_paths=["**"],
    )

    assert "the key" not in "".join(said)
    assert said[3] == "[nothing found]"
    assert (outside / "secret").read_text() == "the key"
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_a_file_is_replaced_and_never_written_through_a_hard_link(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").write_text("kept")
    os.link(tmp_path / "outside", tmp_path / "inside" / "file")

    Files(tmp_path / "inside").write("file", b"new")

    assert (tmp_path / "outside").read_text() == "kept"
    assert (tmp_path / "inside" / "file").read_text() == "new"


def test_a_file_that_is_too_large_is_named_with_its_size(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(WorkspaceError, match=str(1 << 40)):
        Files(tmp_path).read("big")


def test_what_is_no_text_is_not_shown(place: Bench) -> None:
    (place.workspace / "calc.py").write_bytes(b"\x00\x01")

    assert place.seen(turn("read", path="calc.py")) == ["'calc.py' is not text"]


@pytest.mark.parametrize(
    "call",
    [
        turn("read"),
        turn("read", path=3),
        turn("read", path="calc.py", first_line="2"),
        turn("edit", path="calc.py", old="a"),
        turn("run", command=["ls"]),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(place: Bench, call: object) -> None:
    said = place.seen(call)[0]  # type: ignore[arg-type]  # a Turn

    assert "expected a" in said


def test_a_command_tells_its_exit_and_its_words(place: Bench) -> None:
    said = place.seen(turn("run", command="echo out; echo err >&2; exit 3"))[0]

    assert said.splitlines() == ["exit 3", "--- stdout", "out", "", "--- stderr", "err"]


def test_a_command_runs_inside_the_fence_without_our_secrets(
    place: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "hunter2")

    said = place.seen(turn("run", command="env; touch ../escaped; echo done"))[0]

    assert "hunter2" not in said
    if place.job().fence.report().kind != "none":
        assert not (place.root / "escaped").exists()


def test_a_command_has_a_time_of_its_own(place: Bench) -> None:
    said = place.seen(turn("run", command="sleep 60", timeout_sec=1))[0]

    assert "1" in said
    assert "exit" not in said


class _Page(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Stay silent."""

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "http://other.example/")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from the page")


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_page_of_a_granted_host_is_fetched(place: Bench, site: str) -> None:
    page, moved, other = place.seen(
        turn("fetch", url=f"http://{site}/"),
        turn("fetch", url=f"http://{site}/moved"),
        turn("fetch", url="http://127.0.0.1:1/"),
        network=[site],
    )

    assert "hello from the page" in page
    assert "status 302, moved to http://other.example/" in moved
    assert "is not among the hosts" in other


@pytest.mark.parametrize(
    ("url", "network", "granted"),
    [
        ("https://example.org/x", ("example.org",), True),
        ("https://EXAMPLE.org./x", ("example.org",), True),
        ("http://example.org/x", ("example.org",), False),
        ("http://example.org/x", ("example.org:80",), True),
        ("https://evil-example.org/", ("example.org",), False),
        ("https://example.org.evil.net/", ("example.org",), False),
        ("https://example.org@evil.net/", ("example.org",), False),
        ("https://example.org/", "deny", False),
        ("https://example.org/", "allow", True),
        ("file:///etc/passwd", "allow", False),
        ("http://[::1]:80/", ("[::1]:80",), True),
        ("http://example.org:99999/", ("example.org",), False),
    ],
)
def test_only_the_hosts_of_the_manifest_are_fetched_from(
    url: str, network: object, *, granted: bool
) -> None:
    refused = refusal_of(urlsplit(url), network)  # type: ignore[arg-type]  # a Network

    assert (refused == "") is granted


def test_a_workspace_with_too_many_files_still_runs_commands(
    place: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_run.executors.agent.changes.MOST_FILES", 1)

    said = place.seen(turn("run", command="echo fine"))[0]

    assert "fine" in said


def test_folders_nobody_may_open_do_not_stop_the_agent(place: Bench) -> None:
    closed = "mkdir -p shut/in; touch shut/in/x; chmod 600 shut/in; chmod 000 shut"

    run, listed, edited = place.seen(
        turn("run", command=closed),
        turn("read", path=""),
        turn("edit", path="shut/in/x", old="", new="y"),
        allowed_paths=["**"],
    )

    (place.workspace / "shut").chmod(0o755)
    (place.workspace / "shut" / "in").chmod(0o755)
    assert run.startswith("exit 0")
    assert "calc.py" in listed
    assert "shut/in/x" in edited
