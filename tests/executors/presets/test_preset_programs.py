"""Installed programs are found with all they must be able to read."""

import os
import sys
from pathlib import Path

import pytest

from agent_run.errors import ExecutorMissing
from agent_run.executors.presets import find_program


def placed(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_node_script_brings_its_interpreter_and_all_packages(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "node_modules"
    script = placed(packages / "@maker" / "tool" / "bin" / "tool.js", "#!/usr/bin/env node\n")
    node = placed(tmp_path / "node" / "node", "\x7fELF")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").symlink_to(script)

    program = find_program("tool", f"{tmp_path / 'bin'}{os.pathsep}{node.parent}")

    assert program.argv == (str(node), str(script))
    assert program.readable == (packages, node)


def test_a_native_binary_is_started_itself(tmp_path: Path) -> None:
    binary = placed(tmp_path / "node_modules" / "tool" / "bin" / "tool.exe", "\x7fELF")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").symlink_to(binary)

    program = find_program("tool", str(tmp_path / "bin"))

    assert program.argv == (str(binary),)
    assert program.readable == (tmp_path / "node_modules",)


def test_a_python_script_brings_its_environment_and_the_python_behind_it(
    tmp_path: Path,
) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    placed(tmp_path / "venv" / "pyvenv.cfg", "home = somewhere\n")
    script = placed(tmp_path / "venv" / "bin" / "tool", f"#!{python}\n")
    python.symlink_to(Path(sys.executable).resolve())

    program = find_program("tool", str(script.parent))

    assert program.argv == (str(python), str(script))
    assert program.readable == (tmp_path / "venv", Path(sys.executable).resolve().parents[1])


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExecutorMissing, match="program 'tool' is not on PATH"):
        find_program("tool", str(tmp_path))


def test_a_missing_interpreter_is_named(tmp_path: Path) -> None:
    placed(tmp_path / "tool", "#!/usr/bin/env node\n")

    with pytest.raises(ExecutorMissing, match="program 'tool' needs 'node'"):
        find_program("tool", str(tmp_path))
