"""Private folders: held while their owner lives, removed when it is done or dead."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from agent_run.engine.folders import held_folder, sweep
from agent_run.workspace.removal import remove_tree


def test_a_folder_is_there_for_its_owner_and_gone_afterwards(tmp_path: Path) -> None:
    with held_folder(tmp_path / "jobs" / "one", remove_tree) as folder:
        (folder / "inner").mkdir()
        assert sweep(tmp_path / "jobs", remove_tree) == ()
        assert folder.is_dir()

    assert list((tmp_path / "jobs").iterdir()) == []


def test_a_folder_is_gone_when_its_owner_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyError), held_folder(tmp_path / "one", remove_tree):
        raise KeyError

    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_process_left_is_swept(tmp_path: Path) -> None:
    code = """
    import os, sys
    from pathlib import Path
    from agent_run.engine.folders import held_folder
    held = held_folder(Path(sys.argv[1]) / "dead", lambda path: None)
    held.__enter__().joinpath("left").write_text("x")
    os._exit(9)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    subprocess.run(command, check=False)
    assert (tmp_path / "dead" / "left").is_file()

    with held_folder(tmp_path / "alive", remove_tree):
        assert sweep(tmp_path, remove_tree) == ("dead",)

    assert list(tmp_path.iterdir()) == []


def test_a_claim_that_is_tried_again_finds_a_fresh_folder(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "old").touch()

    with held_folder(tmp_path / "one", remove_tree) as folder:
        assert list(folder.iterdir()) == []


def test_nothing_to_sweep_is_fine(tmp_path: Path) -> None:
    assert sweep(tmp_path / "nowhere", remove_tree) == ()
