"""A plain folder is a project too, with the same refusals."""

from pathlib import Path

import pytest

from agent_run.errors import ApplyRefused
from agent_run.workspace.trees import Trees, open_workspace
from tests.workspace.world import fingerprint, put, stamp


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "folder"
    put(root, "src/app.py", "old\n")
    put(root, "src/gone.py", "old\n")
    put(root, "run.sh", "#!/bin/sh\n").chmod(0o755)
    put(root, "node_modules/x.js", "x")
    (root / "link").symlink_to("src/app.py")
    return root


@pytest.fixture
def trees(folder: Path) -> Trees:
    return open_workspace(folder, folder / ".agent-run" / "workspaces")


def accept(trees: Trees) -> None:
    base = trees.base()
    checkout = trees.prepare(base, task_id="repo-142", claim=2)
    put(checkout.path, "src/app.py", "new\n")
    put(checkout.path, "src/more/new.py", "new\n")
    (checkout.path / "src/gone.py").unlink()
    put(checkout.path, "evil.py", "x")
    candidate = trees.collect(checkout, allowed=("src/**",))
    assert [(one.reason, one.path) for one in candidate.refused] == [
        ("out_of_scope", "evil.py")
    ]
    trees.promote(base, candidate, stamp=stamp(), message="x")


def files(folder: Path) -> dict[str, str]:
    seen = fingerprint(folder)
    return {path: what for path, what in seen.items() if "/.agent-run" not in path}


def test_the_base_depends_on_the_files_alone(folder: Path, trees: Trees) -> None:
    before = files(folder)
    base = trees.base()

    assert trees.base() == base
    put(folder, "src/app.py", "other\n")
    assert trees.base().tree != base.tree
    put(folder, "src/app.py", "old\n")
    assert trees.base() == base
    assert files(folder) == before
    assert "'node_modules/'" in base.notes[0]


def test_a_copy_has_what_the_folder_has(trees: Trees) -> None:
    checkout = trees.prepare(trees.base(), task_id="repo-142", claim=2)

    assert (checkout.path / "run.sh").stat().st_mode & 0o100
    assert (checkout.path / "link").readlink() == Path("src/app.py")
    assert not (checkout.path / "node_modules").exists()
    assert not (checkout.path / ".agent-run").exists()


def test_apply_and_rollback_write_files(folder: Path, trees: Trees) -> None:
    before = files(folder)
    accept(trees)
    assert files(folder) == before

    applied = trees.apply(stamp())
    assert applied.paths == ("src/app.py", "src/gone.py", "src/more/new.py")
    assert (folder / "src/app.py").read_text() == "new\n"
    assert (folder / "src/more/new.py").is_file()
    assert not (folder / "src/gone.py").exists()
    assert not (folder / "evil.py").exists()
    with pytest.raises(ApplyRefused, match="already"):
        trees.apply(stamp())

    trees.rollback(stamp())
    assert files(folder) == before
    with pytest.raises(ApplyRefused, match="not in this folder"):
        trees.rollback(stamp())


@pytest.mark.parametrize("path", ["src/app.py", "src/more/new.py", "src/more", "src/gone.py"])
def test_what_changed_since_is_not_overwritten(folder: Path, trees: Trees, path: str) -> None:
    accept(trees)
    put(folder, path, "my own\n")
    before = files(folder)

    with pytest.raises(ApplyRefused, match="changed since"):
        trees.apply(stamp())

    assert files(folder) == before


def test_a_link_in_the_way_is_not_followed(folder: Path, trees: Trees, tmp_path: Path) -> None:
    accept(trees)
    (tmp_path / "elsewhere").mkdir()
    (folder / "src/more").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ApplyRefused):
        trees.apply(stamp())

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_rollback_does_not_overwrite_later_work(folder: Path, trees: Trees) -> None:
    accept(trees)
    trees.apply(stamp())
    put(folder, "src/app.py", "better\n")
    before = files(folder)

    with pytest.raises(ApplyRefused, match="changed since"):
        trees.rollback(stamp())

    assert files(folder) == before


def test_an_empty_folder_is_a_base(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    trees = open_workspace(tmp_path / "empty", tmp_path / "state")
    base = trees.base()
    checkout = trees.prepare(base, task_id="repo-142", claim=2)
    put(checkout.path, "a.txt", "a")

    candidate = trees.collect(checkout, allowed=("*.txt",))
    trees.promote(base, candidate, stamp=stamp(), message="x")
    trees.apply(stamp())

    assert (tmp_path / "empty/a.txt").read_text() == "a"


def test_a_file_may_become_a_folder_and_back(folder: Path, trees: Trees) -> None:
    before = files(folder)
    base = trees.base()
    checkout = trees.prepare(base, task_id="repo-142", claim=2)
    (checkout.path / "src/gone.py").unlink()
    put(checkout.path, "src/gone.py/__init__.py", "x")
    candidate = trees.collect(checkout, allowed=("src/**",))
    trees.promote(base, candidate, stamp=stamp(), message="x")

    trees.apply(stamp())
    assert (folder / "src/gone.py/__init__.py").is_file()
    trees.rollback(stamp())

    assert files(folder) == before
