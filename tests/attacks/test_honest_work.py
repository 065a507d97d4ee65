"""Every honest executor, end to end in the real fence: accepted, with exactly its change."""

from pathlib import Path

import pytest

from tests.attacks.honest import HONEST, Honest
from tests.support.projects import Stage, new_project, running


def test_the_list_is_long_and_each_deed_is_told_apart() -> None:
    names = [honest.name for honest in HONEST]

    assert len(set(names)) == len(names) >= 90


@pytest.mark.parametrize("honest", HONEST, ids=lambda honest: honest.name.replace(" ", "-"))
def test_it_is_accepted_with_exactly_its_change(
    honest: Honest, tmp_path: Path, shared_cache: Path
) -> None:
    project = new_project(tmp_path)
    with Stage(project, cache=shared_cache) as stage:
        came = stage.perform(honest.script, **honest.manifest)

        assert came.accepted, f"{came.said}\n{came.transcript}"
        assert came.changes() == honest.changes
        assert came.touched == ()
        assert running(project) == []
        assert isinstance(came.task.observed, dict)
        assert any(honest.dropped in str(one) for one in came.task.observed["dropped"] or [""])  # type: ignore[union-attr]
