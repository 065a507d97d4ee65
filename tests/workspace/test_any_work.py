"""Whatever is written and deleted, the result is the base plus what is allowed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_run.contract.paths import Scope
from tests.workspace.world import World, new_world, put

NAMES = st.sampled_from(["a.py", "b.txt", "é", "new file", "run.sh", "x.pyc", "conftest.py"])
FOLDERS = st.sampled_from(["", "src/", "docs/", "src/sub/", "build/", "tests/"])
PATHS = st.builds(lambda folder, name: f"{folder}{name}", FOLDERS, NAMES)
BASE = ["README.md", "src/app.py", "src/util.py", "docs/guide.md", "tests/test_app.py"]
EDITS = st.dictionaries(
    st.one_of(PATHS, st.sampled_from(BASE)), st.one_of(st.none(), st.binary(max_size=20))
)
ALLOWED = st.lists(
    st.sampled_from(["src/**", "src/*", "docs/guide.md", "**", "*", "**/*.py", "build/**"])
).map(tuple)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> World:
    return new_world(tmp_path_factory.mktemp("any"))


@pytest.mark.usefixtures("shared")
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(edits=EDITS, allowed=ALLOWED)
def test_the_result_is_the_base_plus_what_is_allowed(
    shared: World, edits: dict[str, bytes | None], allowed: tuple[str, ...]
) -> None:
    base = shared.trees.base()
    checkout = shared.trees.prepare(base, task_id="any", claim=1)
    before = _contents(checkout.top)
    for path, content in edits.items():
        if content is None:
            (checkout.path / path).unlink(missing_ok=True)
        else:
            put(checkout.path, path, content)

    candidate = shared.trees.collect(checkout, allowed=allowed)

    expected = _expected(before, edits, _standing(allowed, before))
    written = shared.files(base, candidate, "any")
    try:
        assert _contents(written) == expected
        assert (candidate.tree == base.tree) is (expected == before)
    finally:
        shutil.rmtree(written)
        shared.trees.discard(checkout)
        shared.trees.sweep()


def _standing(allowed: tuple[str, ...], before: dict[str, bytes]) -> Callable[[str], str]:
    scope = Scope(allowed)
    return lambda path: scope.standing(path, in_base=path in before)


def _expected(
    before: dict[str, bytes], edits: dict[str, bytes | None], standing: Callable[[str], str]
) -> dict[str, bytes]:
    after = dict(before)
    for path, content in edits.items():
        if standing(path) == "allowed":
            after.pop(path, None)
            if content is not None:
                after[path] = content
    return after


def _contents(root: Path) -> dict[str, bytes]:
    files = (one for one in root.rglob("*") if one.is_file() and not one.is_symlink())
    inner = ((one.relative_to(root).as_posix(), one) for one in files)
    return {path: one.read_bytes() for path, one in inner if not path.startswith(".git/")}
