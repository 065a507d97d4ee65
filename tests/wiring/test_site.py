"""A site from settings: executors by name, with what their configuration says."""

from pathlib import Path
from typing import Any

import pytest

from agent_run.contract.brief import Brief
from agent_run.contract.record import Record
from agent_run.errors import ContractError
from agent_run.executors.coding_agent import CodingAgent
from agent_run.executors.command import CommandExecutor
from agent_run.executors.function import executor
from agent_run.ports.fence import Limits
from agent_run.wiring.opening import open_desk
from agent_run.wiring.settings import Settings
from agent_run.wiring.site import open_executor, open_site
from tests.support.projects import new_project


@executor("greets")
def greets(brief: Brief) -> Record:
    """Stand ready to be found by name."""
    return Record()


def settings(place: Path, **executors: dict[str, Any]) -> Settings:
    return Settings.model_validate({"root": place, "executors": executors})


def test_a_command_of_the_configuration_gets_only_what_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "x")
    monkeypatch.setenv("OTHER_TOKEN", "y")
    own = {
        "command": "make it",
        "pass_env": ["MY_TOKEN", "ABSENT"],
        "memory_mb": 64,
        "cpu_sec": 9,
    }

    found = open_executor("own", settings(tmp_path, own=own))

    assert isinstance(found, CommandExecutor)
    assert found.env["MY_TOKEN"] == "x"
    assert "OTHER_TOKEN" not in found.env
    assert found.limits == {"memory_mb": 64, "cpu_sec": 9}


def test_presets_are_there_without_configuration(tmp_path: Path) -> None:
    assert isinstance(open_executor("codex", settings(tmp_path)), CodingAgent)


def test_a_function_is_found_by_its_place(tmp_path: Path) -> None:
    own = {"function": f"{__name__}:greets"}

    assert open_executor("own", settings(tmp_path, own=own)) is greets


@pytest.mark.parametrize(
    ("configured", "said"),
    [
        ({"function": "nowhere"}, "is not like 'package.module:name'"),
        ({"function": "no.such.module:x"}, "cannot be loaded"),
        ({"function": f"{__name__}:settings"}, "is not marked with @executor"),
        ({}, "neither command, preset nor function"),
    ],
)
def test_what_cannot_be_an_executor_is_said_in_a_sentence(
    tmp_path: Path, configured: dict[str, Any], said: str
) -> None:
    with pytest.raises(ContractError, match=said):
        open_executor("own", settings(tmp_path, own=configured))


@pytest.mark.parametrize("name", [None, "nobody"])
def test_an_executor_that_nobody_knows_is_refused(tmp_path: Path, name: str | None) -> None:
    with pytest.raises(ContractError, match="executor"):
        open_executor(name, settings(tmp_path))


def test_a_site_limits_everything_by_default(tmp_path: Path) -> None:
    project = new_project(tmp_path)
    desk = open_desk(f"sqlite:///{project.state}/ledger.db")
    try:
        site = open_site(desk, settings(project.root))
    finally:
        desk.close()

    limits: Limits = site.limits
    assert all((limits.memory_mb, limits.processes, limits.disk_mb, limits.output_bytes))
    assert site.environment
    assert site.dirty == "refuse"
