"""Honest work is never refused: as many controls as there are attacks."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workspace.world import World, commit_all, git, put

Work = Callable[[Path], object]
Told = set[tuple[str, str]]


def write(path: str, content: str | bytes = "new\n") -> Work:
    return lambda tree: put(tree, path, content)


def move(old: str, new: str) -> Work:
    def work(tree: Path) -> None:
        (tree / new).parent.mkdir(parents=True, exist_ok=True)
        (tree / old).rename(tree / new)

    return work


def both(*works: Work) -> Work:
    return lambda tree: [work(tree) for work in works]


def save_like_an_editor(tree: Path) -> None:
    put(tree, "src/.app.py.swp", "swap")
    put(tree, "src/app.py~", "backup")
    put(tree, "src/app.py.tmp", "new\n").replace(tree / "src/app.py")


def run_python(tree: Path) -> None:
    argv = [sys.executable, "-m", "compileall", "-q", "src"]
    subprocess.run(argv, cwd=tree, check=True, env={})
    put(tree, "src/app.py", "new\n")


def commit_and_edit(tree: Path) -> None:
    put(tree, "src/app.py", "new\n")
    commit_all(tree, "work in progress")
    git(tree, "checkout", "-q", "-b", "attempt")


def folder_for_file(tree: Path) -> None:
    (tree / "src/util.py").unlink()
    put(tree, "src/util.py/__init__.py", "")


def cold(tree: Path) -> None:
    put(tree, "src/app.py", "new\n").chmod(0o600)
    (tree / "src/util.py").chmod(0o664)


CHANGED: Told = {("src/app.py", "changed")}
WORKS: list[tuple[str, Work, Told]] = [
    ("nothing at all", lambda _: None, set()),
    ("an edit", write("src/app.py"), CHANGED),
    ("an empty file", write("src/__init__.py", ""), {("src/__init__.py", "added")}),
    ("a new file by glob", write("src/new.py"), {("src/new.py", "added")}),
    ("a new folder", write("src/a/b/c.py"), {("src/a/b/c.py", "added")}),
    ("a delete", lambda t: (t / "src/util.py").unlink(), {("src/util.py", "deleted")}),
    (
        "a rename",
        move("src/util.py", "src/tools.py"),
        {("src/util.py", "deleted"), ("src/tools.py", "added")},
    ),
    (
        "a rename by case",
        move("src/util.py", "src/Util.py"),
        {("src/util.py", "deleted"), ("src/Util.py", "added")},
    ),
    (
        "a move to a folder",
        move("src/util.py", "src/deep/util.py"),
        {("src/util.py", "deleted"), ("src/deep/util.py", "added")},
    ),
    ("a runnable bit", lambda t: (t / "src/app.py").chmod(0o755), {("src/app.py", "mode")}),
    ("a bit taken", lambda t: (t / "run.sh").chmod(0o644), {("run.sh", "mode")}),
    ("binary", write("src/data.bin", bytes(range(256))), {("src/data.bin", "changed")}),
    ("a large file", write("src/large", b"x" * 3_000_000), {("src/large", "added")}),
    ("no newline at the end", write("src/app.py", "x"), CHANGED),
    ("foreign line ends", write("src/app.py", "a\r\nb\r\n"), CHANGED),
    ("Latin-1 content", write("src/app.py", b"caf\xe9"), CHANGED),
    (
        "written and written back",
        both(write("src/app.py"), write("src/app.py", "def answer():\n    return 41\n")),
        set(),
    ),
    ("an editor's way of saving", save_like_an_editor, CHANGED),
    ("permissions of the group", cold, CHANGED),
    ("a space in a name", write("src/my file.py"), {("src/my file.py", "added")}),
    ("a name in Greek", write("src/λόγος.py"), {("src/λόγος.py", "added")}),
    ("an emoji with a joiner", write("src/👩\u200d💻.md"), {("src/👩\u200d💻.md", "added")}),
    ("a leading dash", write("src/-rf"), {("src/-rf", "added")}),
    ("quotes", write('src/it\'s "x".py'), {('src/it\'s "x".py', "added")}),
    ("brackets", write("src/[id]/page.tsx"), {("src/[id]/page.tsx", "added")}),
    ("a colon and a hash", write("src/a:b#c;$d.py"), {("src/a:b#c;$d.py", "added")}),
    ("a dot at the end", write("src/odd."), {("src/odd.", "added")}),
    ("a hidden file", write("src/.hidden"), {("src/.hidden", "added")}),
    ("a name about git", write("src/git.py"), {("src/git.py", "added")}),
    ("a name like git", write("src/.gitkeep", ""), {("src/.gitkeep", "added")}),
    ("a very long name", write("src/" + "n" * 250), {("src/" + "n" * 250, "added")}),
    ("caches left behind", run_python, CHANGED),
    ("commits of its own", commit_and_edit, CHANGED),
    ("an empty folder", lambda t: (t / "src/empty").mkdir(), set()),
    (
        "a file becomes a package",
        folder_for_file,
        {("src/util.py", "deleted"), ("src/util.py/__init__.py", "added")},
    ),
    ("touched but not changed", lambda t: os.utime(t / "README.md", (1, 1)), set()),
]


@pytest.mark.parametrize(
    ("work", "told"), [case[1:] for case in WORKS], ids=[case[0] for case in WORKS]
)
def test_it_enters_the_result(world: World, work: Work, told: Told) -> None:
    base, checkout = world.start()
    work(checkout.path)

    candidate = world.trees.collect(checkout, allowed=("src/**", "run.sh"))

    assert candidate.refused == ()
    assert {(one.path, one.kind) for one in candidate.changes} == told
    written = world.files(base, candidate)
    for path, kind in told:
        file = written / path
        assert (kind == "deleted") != file.is_file()
        if kind != "deleted":
            assert file.read_bytes() == (checkout.path / path).read_bytes()
            assert bool(file.stat().st_mode & 0o100) == bool(
                (checkout.path / path).stat().st_mode & 0o100
            )
    assert (candidate.tree == base.tree) is not bool(told)


@pytest.mark.parametrize(
    "path",
    [
        ".venv/bin/python",
        "node_modules/.bin/x",
        "build/lib/app.py",
        "dist/app.whl",
        ".pytest_cache/README.md",
        "src/__pycache__/app.cpython-311.pyc",
        ".mypy_cache/3.11/x.json",
        ".coverage",
        "app.egg-info/PKG-INFO",
        ".cache/pip/x",
    ],
)
def test_leftovers_are_dropped_and_noted(world: World, path: str) -> None:
    base, checkout = world.start()
    put(checkout.path, path, "left behind")

    candidate = world.trees.collect(checkout, allowed=("src/**",))

    assert (candidate.refused, candidate.tree) == ((), base.tree)
    assert len(candidate.dropped) == 1
    assert path.startswith(candidate.dropped[0])


def test_a_link_in_the_place_of_a_cache_is_dropped_too(world: World) -> None:
    base, checkout = world.start()
    (checkout.path / "node_modules").symlink_to("/usr/lib")

    candidate = world.trees.collect(checkout, allowed=("src/**",))

    assert (candidate.refused, candidate.tree) == ((), base.tree)
    assert candidate.dropped == ("node_modules/",)


def test_build_output_that_is_asked_for_enters(world: World) -> None:
    _, checkout = world.start()
    put(checkout.path, "dist/app.js", "built")
    put(checkout.path, "dist/app.js.map", "built")

    candidate = world.trees.collect(checkout, allowed=("dist/app.js",))

    assert [one.path for one in candidate.changes] == ["dist/app.js"]
    assert candidate.dropped == ("dist/app.js.map",)


def test_a_protected_file_that_is_named_exactly_enters(world: World) -> None:
    _, checkout = world.start()
    put(checkout.path, "tests/test_app.py", "def test_more(): ...\n")
    put(checkout.path, "pyproject.toml", "[project]\n")

    candidate = world.trees.collect(checkout, allowed=("tests/test_app.py", "pyproject.toml"))

    assert candidate.refused == ()
    assert len(candidate.changes) == 2


def test_the_name_of_a_folder_allows_all_that_is_below_it(world: World) -> None:
    _, checkout = world.start()
    put(checkout.path, "src/sub/new.py", "new")

    candidate = world.trees.collect(checkout, allowed=("src",))

    assert [one.path for one in candidate.changes] == ["src/sub/new.py"]


def test_odd_names_that_the_base_has_may_be_edited(world: World) -> None:
    odd = ["src/back\\slash.py", "src/new\nline.py", "src/\udcff.py", "src/Twin", "src/twin"]
    for path in odd:
        put(world.repo, path, "old\n")
    commit_all(world.repo, "odd")
    base, checkout = world.start()
    for path in odd:
        put(checkout.path, path, "new\n")

    candidate = world.trees.collect(checkout, allowed=("src/**",))

    assert candidate.refused == ()
    assert len(candidate.changes) == len(odd)
    assert all((world.files(base, candidate, "j") / path).exists() for path in odd[:1])


def test_lines_are_counted_and_the_patch_can_be_read(world: World) -> None:
    base, checkout = world.start()
    put(checkout.path, "src/app.py", "def answer():\n    return 42\n")
    put(checkout.path, "src/data.bin", b"\0\0")

    candidate = world.trees.collect(checkout, allowed=("src/**",))

    counts = {one.path: (one.added, one.removed) for one in candidate.changes}
    assert counts == {"src/app.py": (1, 1), "src/data.bin": (None, None)}
    assert candidate.lines == 2
    assert b"+    return 42" in world.trees.diff(base, candidate)
