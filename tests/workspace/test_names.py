"""Names that deceive, and names that only look as if they did."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_run.errors import WorkspaceError
from agent_run.workspace.names import colliding, is_gits_own, name_fault, printable
from agent_run.workspace.plumbing import Entry, Git
from agent_run.workspace.writer import write_tree
from tests.workspace.world import GIT, World


@pytest.mark.parametrize(
    "name",
    [
        *(".git", ".GIT", ".Git", ".git ", ".git.", ".git . ", "git~1", "GIT~1", ".git:x"),
        *(".git::$INDEX_ALLOCATION", ".g\u200cit", "\ufeff.git", ".gi\u200dt", "x\\.git"),
        *(".git\\x", "\uff0egit", ".\uff47it"),
    ],
)
def test_a_name_of_gits_own_is_known_in_any_disguise(name: str) -> None:
    assert is_gits_own(name.encode())
    assert name_fault(b"src/" + name.encode()) is not None


@pytest.mark.parametrize(
    "name", [".gitkeep", "git", ".github", "gitlab", "git~10", "x.git", "digit~1", ".g it"]
)
def test_a_name_about_git_is_no_fault(name: str) -> None:
    assert not is_gits_own(name.encode())
    assert name_fault(name.encode()) is None


@given(st.binary(min_size=1, max_size=30))
def test_anything_can_be_printed_on_one_line(path: bytes) -> None:
    shown = printable(path)

    assert shown.encode()
    assert len(shown.splitlines()) <= 1
    assert not any(letter < " " for letter in shown)


@given(st.lists(st.text("abAB/é", min_size=1, max_size=6).filter(lambda one: "//" not in one)))
def test_a_collision_is_always_between_two_different_spellings(names: list[str]) -> None:
    paths = {name.strip("/").encode() for name in names} - {b""}

    for path, other in colliding(paths, paths).items():
        start = path[: len(other)] if path.isascii() and other.isascii() else None
        assert path in paths
        assert start is None or (start != other and start.lower() == other.lower())


def test_only_new_names_are_judged_for_collisions() -> None:
    everything = [b"a/X", b"a/x", b"b/y", b"B/y2"]

    assert colliding([], everything) == {}
    assert colliding([b"B/y2"], everything) == {b"B/y2": b"b"}
    assert colliding([b"a/X"], everything) == {b"a/X": b"a/x"}


@pytest.mark.parametrize(
    "paths",
    [[b"../x"], [b"a/../../x"], [b"/etc/x"], [b".git/config"], [b"a/.GIT/x"], [b"a//b"]],
)
def test_a_tree_that_leaves_its_folder_is_not_written(world: World, paths: list[bytes]) -> None:
    target = world.place / "into"
    target.mkdir()
    git = Git(GIT, world.repo / ".git")

    with pytest.raises(WorkspaceError, match="would leave its folder"):
        write_tree(git, {path: Entry(0o100644, "1" * 40, 1) for path in paths}, target)

    assert list(target.iterdir()) == []


def test_a_tree_with_a_file_below_a_link_is_not_written(world: World) -> None:
    target = world.place / "into"
    target.mkdir()
    entries = {b"a": Entry(0o120000, "1" * 40, 1), b"a/b": Entry(0o100644, "1" * 40, 1)}

    with pytest.raises(WorkspaceError, match="would leave its folder"):
        write_tree(Git(GIT, world.repo / ".git"), entries, target)
