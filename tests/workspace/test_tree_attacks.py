"""What hostile executors leave in the tree, and what must hold afterwards.

After each attack the user's repository and home are byte-identical, nothing hostile is in
the result, and the reason is named.
"""

import os
import socket
import stat
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_run.workspace.collect import Bounds
from agent_run.workspace.trees import open_workspace
from tests.workspace.world import World, git, put, stamp

ALL = ("**",)
Attack = Callable[[Path, World], object]


def hard_link(tree: Path, world: World) -> None:
    (tree / "src/app.py").unlink()
    (tree / "src/app.py").hardlink_to(world.secret)


def swap_folder(tree: Path, world: World) -> None:
    (tree / "src").rename(tree / "build")
    (tree / "src").symlink_to(world.home)


def bind_socket(tree: Path, world: World) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tree)  # the name of a socket may have 107 bytes only
        try:
            server.bind("src/s")
        finally:
            os.chdir(here)


def sparse(tree: Path, world: World) -> None:
    with (tree / "src/huge").open("wb") as file:
        file.truncate(15 << 40 if os.statvfs(tree).f_frsize == 4096 else 1 << 40)


def deep(tree: Path, world: World) -> None:
    folder = os.open(tree, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)


def locked(tree: Path, world: World) -> None:
    put(tree, "hidden/evil.py", "x").chmod(0)
    (tree / "hidden").chmod(0)


def file_to_folder(tree: Path, world: World) -> None:
    (tree / "src/app.py").unlink()
    put(tree, "src/app.py/evil.py", "x")


def retarget(tree: Path, world: World) -> None:
    (tree / "link.md").unlink()
    (tree / "link.md").symlink_to(world.secret)


def replaced_by_link(target: str) -> Attack:
    def attack(tree: Path, world: World) -> None:
        (tree / "src/app.py").unlink()
        (tree / "src/app.py").symlink_to(target)

    return attack


def pipe_for_file(tree: Path, world: World) -> None:
    (tree / "src/app.py").unlink()
    os.mkfifo(tree / "src/app.py")


def move_into_scope(tree: Path, world: World) -> None:
    (tree / "docs/guide.md").rename(tree / "src/guide.md")


def writes(path: str, content: str = "evil\n") -> Attack:
    return lambda tree, _: put(tree, path, content)


def writes_bytes(path: bytes) -> Attack:
    def attack(tree: Path, world: World) -> None:
        Path(os.fsdecode(os.fsencode(tree) + b"/" + path)).write_text("evil\n")

    return attack


def nested_repository(tree: Path, world: World) -> None:
    git(tree, "init", "-q", "src/inner")
    put(tree, "src/inner/evil.py", "x")


NFD = unicodedata.normalize("NFD", "src/é.py")
CASES: list[tuple[str, Attack, tuple[str, ...], str, str]] = [
    # name, attack, allowed, reason, path
    ("new file out of scope", writes("evil.py"), ("src/**",), "out_of_scope", "evil.py"),
    ("edit out of scope", writes("README.md"), ("src/**",), "out_of_scope", "README.md"),
    ("edit with nothing allowed", writes("src/app.py"), (), "out_of_scope", "src/app.py"),
    (
        "delete out of scope",
        lambda tree, _: (tree / "README.md").unlink(),
        ("src/**",),
        "out_of_scope",
        "README.md",
    ),
    (
        "mode out of scope",
        lambda tree, _: (tree / "README.md").chmod(0o755),
        ("src/**",),
        "out_of_scope",
        "README.md",
    ),
    ("moved into scope", move_into_scope, ("src/**",), "out_of_scope", "docs/guide.md"),
    (
        "star crosses no slash",
        writes("src/sub/x.py"),
        ("src/*",),
        "out_of_scope",
        "src/sub/x.py",
    ),
    (
        "file becomes folder",
        file_to_folder,
        ("src/app.py",),
        "out_of_scope",
        "src/app.py/evil.py",
    ),
    ("absolute link", replaced_by_link("/etc/passwd"), ALL, "tampered", "src/app.py"),
    ("climbing link", replaced_by_link("../../../../home/x"), ALL, "tampered", "src/app.py"),
    ("link inside", replaced_by_link("util.py"), ALL, "tampered", "src/app.py"),
    ("link to itself", replaced_by_link("app.py"), ALL, "tampered", "src/app.py"),
    ("folder swapped for link", swap_folder, ALL, "tampered", "src"),
    ("link of the base retargeted", retarget, ALL, "tampered", "link.md"),
    ("hard link to a secret", hard_link, ALL, "tampered", "src/app.py"),
    (
        "hard link inside",
        lambda tree, _: (tree / "src/new.py").hardlink_to(tree / "src/app.py"),
        ALL,
        "tampered",
        "src/new.py",
    ),
    ("pipe", lambda tree, _: os.mkfifo(tree / "src/p"), ALL, "tampered", "src/p"),
    ("pipe for a file", pipe_for_file, ALL, "tampered", "src/app.py"),
    ("socket", bind_socket, ALL, "tampered", "src/s"),
    (
        "setuid",
        lambda tree, _: (tree / "src/app.py").chmod(0o4755),
        ALL,
        "tampered",
        "src/app.py",
    ),
    ("sparse giant", sparse, ALL, "over_budget", "src/huge"),
    ("400 folders deep", deep, ALL, "tampered", "/".join(["d"] * 101)),
    ("locked folder", locked, ("src/**",), "out_of_scope", "hidden/evil.py"),
    ("nested repository", nested_repository, ALL, "tampered", "src/inner/.git"),
    ("nested git file", writes("src/.git", "gitdir: /x\n"), ALL, "tampered", "src/.git"),
    ("upper-case git", writes(".GIT/hooks/pre-commit"), ALL, "tampered", ".GIT"),
    ("git with a space", writes(".git /config"), ALL, "tampered", ".git "),
    ("git with a dot", writes("src/.git./config"), ALL, "tampered", "src/.git."),
    ("git's short name", writes("git~1/config"), ALL, "tampered", "git~1"),
    ("git with a stream", writes("src/.git::$INDEX_ALLOCATION"), ALL, "tampered", "src/.git::"),
    ("git with a ghost", writes(".g\u200cit/config"), ALL, "tampered", ".g\u200cit"),
    ("line break", writes("src/a\nb.py"), ALL, "tampered", "src/a\\nb.py"),
    ("escape sequence", writes("src/\x1b[31m.py"), ALL, "tampered", "src/\\x1b[31m.py"),
    ("turned text", writes("src/\u202eyp.py"), ALL, "tampered", "src/\\u202eyp.py"),
    ("backslash", writes("src/..\\..\\x.py"), ALL, "tampered", "src/..\\..\\x.py"),
    ("no text", writes_bytes(b"src/\xff\xfe.py"), ALL, "tampered", "src/\\xff\\xfe.py"),
    ("case of a file", writes("src/APP.py"), ALL, "tampered", "src/APP.py"),
    ("case of a folder", writes("SRC/new.py"), ALL, "tampered", "SRC/new.py"),
    ("test edited", writes("tests/test_app.py"), ALL, "tampered", "tests/test_app.py"),
    ("test added", writes("tests/test_new.py"), ALL, "tampered", "tests/test_new.py"),
    (
        "test deleted",
        lambda tree, _: (tree / "tests/test_app.py").unlink(),
        ALL,
        "tampered",
        "tests/test_app.py",
    ),
    ("conftest", writes("src/conftest.py"), ALL, "tampered", "src/conftest.py"),
    ("pytest.ini", writes("pytest.ini"), ALL, "tampered", "pytest.ini"),
    ("pyproject", writes("pyproject.toml"), ALL, "tampered", "pyproject.toml"),
    ("sitecustomize", writes("sitecustomize.py"), ALL, "tampered", "sitecustomize.py"),
    ("usercustomize", writes("src/usercustomize.py"), ALL, "tampered", "src/usercustomize.py"),
    ("path file", writes("x.pth", "import os\n"), ALL, "tampered", "x.pth"),
    ("workflow", writes(".github/workflows/x.yml"), ALL, "tampered", ".github/workflows/x.yml"),
    ("attributes", writes(".gitattributes", "* filter=x\n"), ALL, "tampered", ".gitattributes"),
    ("ignore rules", writes("src/.gitignore", "*\n"), ALL, "tampered", "src/.gitignore"),
    ("agent rules", writes("AGENTS.md"), ALL, "tampered", "AGENTS.md"),
    ("agent hooks", writes(".claude/settings.json"), ALL, "tampered", ".claude/settings.json"),
    ("agent tools", writes("src/.mcp.json"), ALL, "tampered", "src/.mcp.json"),
]


@pytest.mark.parametrize(
    ("attack", "allowed", "reason", "path"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_it_stays_out_and_is_named(
    world: World, attack: Attack, allowed: tuple[str, ...], reason: str, path: str
) -> None:
    base, checkout = world.start()
    before = world.fingerprint()
    attack(checkout.path, world)

    candidate = world.trees.collect(checkout, allowed=allowed)

    assert [(one.reason, one.path) for one in candidate.refused if one.path.startswith(path)]
    assert reason in {one.reason for one in candidate.refused if one.path.startswith(path)}
    assert all(repr(one.path) in one.sentence for one in candidate.refused)
    assert world.fingerprint() == before
    assert not [one for one in candidate.changes if one.path == path and one.kind != "deleted"]
    written = world.files(base, candidate)
    assert {one.name for one in written.rglob("*") if one.is_symlink()} == {"link.md"}
    assert "evil" not in {one.read_text("latin-1").strip() for one in _files(written)}
    assert "SECRET" not in "".join(one.read_text("latin-1") for one in _files(written))
    world.trees.discard(checkout)
    world.trees.sweep()
    assert world.fingerprint() == before


def test_two_new_names_that_differ_by_case_both_stay_out(world: World) -> None:
    _, checkout = world.start()
    put(checkout.path, "src/new.py", "1")
    put(checkout.path, "src/New.py", "2")

    candidate = world.trees.collect(checkout, allowed=ALL)

    assert candidate.changes == ()
    assert {one.path for one in candidate.refused} == {"src/new.py", "src/New.py"}


def test_two_new_names_that_differ_by_unicode_form_both_stay_out(world: World) -> None:
    _, checkout = world.start()
    put(checkout.path, unicodedata.normalize("NFC", "src/é.py"), "1")
    put(checkout.path, NFD, "2")

    candidate = world.trees.collect(checkout, allowed=ALL)

    assert candidate.changes == ()
    assert {one.reason for one in candidate.refused} == {"tampered"}


def test_what_the_manifest_protects_stays_out_though_it_is_named(world: World) -> None:
    _, checkout = world.start()
    put(checkout.path, "src/app.py", "evil")

    candidate = world.trees.collect(checkout, allowed=("src/app.py",), protected=("src/**",))

    assert candidate.tree == checkout.base.tree
    assert [(one.reason, one.path) for one in candidate.refused] == [("tampered", "src/app.py")]


def test_a_folder_that_was_swapped_as_a_whole_is_not_read(world: World) -> None:
    _, checkout = world.start()
    checkout.top.rename(checkout.home / "gone")
    checkout.top.symlink_to(world.home)

    candidate = world.trees.collect(checkout, allowed=ALL)

    assert candidate.tree == checkout.base.tree
    assert [one.reason for one in candidate.refused] == ["tampered"]


def test_a_tree_of_too_many_files_is_refused_as_a_whole(world: World) -> None:
    trees = open_workspace(world.repo, world.state, bounds=Bounds(entries=50))
    checkout = trees.prepare(trees.base(), task_id="t", claim=1)
    for number in range(60):
        put(checkout.path, f"src/{number}", "x")

    candidate = trees.collect(checkout, allowed=ALL)

    assert candidate.tree == checkout.base.tree
    assert [one.reason for one in candidate.refused] == ["over_budget"]


def test_a_result_that_is_too_large_is_refused_file_by_file(world: World) -> None:
    trees = open_workspace(world.repo, world.state, bounds=Bounds(total_bytes=150))
    checkout = trees.prepare(trees.base(), task_id="t", claim=1)
    put(checkout.path, "src/1", "x" * 100)
    put(checkout.path, "src/2", "x" * 100)

    candidate = trees.collect(checkout, allowed=ALL)

    assert [one.path for one in candidate.changes] == ["src/1"]
    assert [(one.reason, one.path) for one in candidate.refused] == [("over_budget", "src/2")]


def test_a_submodule_is_no_place_to_hide(world: World) -> None:
    git(world.repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor")
    git(world.repo, "commit", "-q", "-m", "module")
    (world.repo / "vendor").mkdir()
    base, checkout = world.start()
    assert (checkout.path / "vendor").is_dir()
    put(checkout.path, "vendor/evil.py", "x")

    candidate = world.trees.collect(checkout, allowed=ALL)

    assert candidate.tree == base.tree
    assert [(one.reason, one.path) for one in candidate.refused] == [
        ("tampered", "vendor/evil.py")
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_is_never_opened(world: World) -> None:
    _, checkout = world.start()
    os.mknod(checkout.path / "src/zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))

    candidate = world.trees.collect(checkout, allowed=ALL)

    assert candidate.changes == ()
    assert "character device" in candidate.refused[0].sentence


def test_a_trailer_in_the_message_does_not_pass_as_ours(world: World) -> None:
    base, checkout = world.start()
    put(checkout.path, "src/app.py", "good\n")
    candidate = world.trees.collect(checkout, allowed=ALL)

    world.trees.promote(
        base, candidate, stamp=stamp(), message="Fix\n\nTask: other\nRollback-Of: 1"
    )

    ref = "refs/agent-run/repo-142"
    told = git(world.repo, "log", "-1", "--format=%(trailers:key=Task,valueonly)", ref)
    assert told.split() == ["repo-142"]
    assert "Rollback-Of" not in git(world.repo, "log", "-1", "--format=%(trailers)", ref)


def _files(root: Path) -> list[Path]:
    return [one for one in root.rglob("*") if one.is_file() and not one.is_symlink()]
