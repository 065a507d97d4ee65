"""Command lines are installed once, or the test fails with a sentence."""

from pathlib import Path

import pytest

from tests.support import clis
from tests.support.clis import CliNotInstalled, installed


def test_a_machine_without_node_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clis, "CACHE", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(CliNotInstalled, match="'codex' needs 'node' and 'npm' on PATH"):
        installed("codex")


def test_what_a_killed_installation_left_is_replaced_and_then_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clis, "CACHE", tmp_path)
    installations = []

    def install(cli: clis.Cli) -> None:
        installations.append(cli.name)
        cli.path.parent.mkdir(parents=True)
        cli.path.write_text("#!/bin/sh\n")
        cli.path.chmod(0o755)

    monkeypatch.setattr(clis, "_install", install)
    leftover = clis.CLIS["codex"].home / "half"
    leftover.mkdir(parents=True)

    programs = {installed("codex"), installed("codex")}

    assert installations == ["codex"]
    assert len(programs) == 1
    assert not leftover.exists()


def test_a_program_that_does_not_start_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clis, "CACHE", tmp_path)

    def install(cli: clis.Cli) -> None:
        cli.path.parent.mkdir(parents=True)
        cli.path.write_text("#!/bin/sh\necho no such platform\nexit 7\n")
        cli.path.chmod(0o755)

    monkeypatch.setattr(clis, "_install", install)

    with pytest.raises(CliNotInstalled, match="exited with 7: no such platform"):
        installed("claude")
