"""Every hostile executor, end to end in the real fence: held, refused, and named."""

import socket
from pathlib import Path

import pytest

from tests.attacks import (
    abuse,
    bent_gates,
    lying_records,
    poisoned_git,
    reaching_out,
)
from tests.attacks.case import Attack
from tests.support.projects import SECRET, Stage, commit_all, new_project, put, running

ATTACKS = (
    *reaching_out.ATTACKS,
    *poisoned_git.ATTACKS,
    *bent_gates.ATTACKS,
    *abuse.ATTACKS,
    *lying_records.ATTACKS,
)


def test_the_list_is_long_and_each_attack_is_told_apart() -> None:
    names = [attack.name for attack in ATTACKS]

    assert len(set(names)) == len(names) >= 100


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name.replace(" ", "-"))
def test_it_is_held_and_refused_and_the_reason_is_named(
    attack: Attack, tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)
    project = new_project(tmp_path)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        Stage(project, cache=shared_cache) as stage,
    ):
        put(project.root, "docs/port", str(server.getsockname()[1]))
        commit_all(project.root, "second")
        stage.limits = attack.limits or stage.limits

        came = stage.perform(attack.script, **attack.manifest)

        assert came.touched == ()
        assert not came.accepted, came.said
        assert came.task.result is None
        assert attack.reasons & (came.reasons | {came.task.reason}), came.said
        assert attack.named in came.said
        assert SECRET not in came.transcript + came.said
        assert "leak" not in came.transcript
        assert running(project) == []
