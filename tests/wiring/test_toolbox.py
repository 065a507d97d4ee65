"""The tools: found on the search path, granted as narrowly as they work."""

import os
from pathlib import Path

import pytest

from agent_run.wiring.toolbox import Toolbox, toolbox


def programs(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def tools(*folders: Path, home: Path, root: Path | None = None) -> Toolbox:
    environ = {"PATH": os.pathsep.join(map(str, folders)), "HOME": str(home), "TOKEN": "x"}
    return toolbox(environ, root=root or home / "project")


def test_of_the_environment_only_path_and_language_pass(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin", "LANG": "C", "GITHUB_TOKEN": "x", "LD_PRELOAD": "y"}

    box = toolbox(environ, root=tmp_path)

    assert set(box.env) == {"PATH", "LANG", "PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE"}
    assert box.readable == ()


@pytest.mark.parametrize("inner", ["bin", ".local/bin", "tools/bin"])
def test_a_folder_in_the_home_never_opens_the_home(tmp_path: Path, inner: str) -> None:
    folder = programs(tmp_path / inner, "tool")
    prefix = folder.parent
    (prefix / "lib").mkdir()
    (prefix / "share" / "keyrings").mkdir(parents=True)

    box = tools(folder, home=tmp_path)

    assert set(box.readable) == {folder, prefix / "lib"}


def test_a_virtual_environment_is_granted_as_a_whole(tmp_path: Path) -> None:
    venv = tmp_path / "project" / ".venv"
    programs(venv / "bin", "python")
    (venv / "pyvenv.cfg").touch()

    box = tools(venv / "bin", home=tmp_path)

    assert box.readable == (venv,)
    assert str(venv / "bin") in box.path


def test_where_links_lead_is_granted_as_well(tmp_path: Path) -> None:
    tool = tmp_path / "share" / "tools" / "x"
    programs(tool / "bin", "x")
    (tool / "pyvenv.cfg").touch()
    folder = programs(tmp_path / "bin")
    (folder / "x").symlink_to(tool / "bin" / "x")
    (folder / "gone").symlink_to("nowhere")

    box = tools(folder, home=tmp_path)

    assert tool in box.readable
    assert tmp_path not in box.readable


def test_programs_of_the_project_itself_are_not_on_the_path(tmp_path: Path) -> None:
    root = tmp_path / "project"
    own = programs(root / "bin", "pytest")

    box = tools(own, Path("relative"), Path("/usr/bin"), home=tmp_path, root=root)

    assert box.path == "/usr/bin"
    assert box.readable == ()


def test_a_link_in_the_home_to_the_home_does_not_open_it(tmp_path: Path) -> None:
    programs(tmp_path, "python3")
    folder = programs(tmp_path / "x" / "bin")
    (folder / "python3").symlink_to(tmp_path / "python3")

    box = tools(folder, home=tmp_path)

    assert tmp_path not in box.readable
    assert tmp_path / "python3" in box.readable


def test_its_fingerprint_changes_with_the_tools(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    programs(venv / "bin", "python")
    packages = venv / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)

    def seen() -> str:
        return tools(venv / "bin", home=tmp_path).fingerprint()

    first, again = seen(), seen()
    os.utime(packages, (1, 1))
    installed = seen()
    (venv / "bin" / "python").write_text("#!/bin/sh\nanother\n")
    replaced = seen()

    assert first == again
    assert len({first, installed, replaced}) == 3


def test_what_is_installed_from_the_project_is_known(tmp_path: Path) -> None:
    root, venv = tmp_path / "project", tmp_path / "venv"
    programs(venv / "bin", "python")
    packages = venv / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "a.pth").write_text(f"import os\n{root / 'src'}\n/elsewhere\n# x\n\n{root}\n")

    assert tools(venv / "bin", home=tmp_path, root=root).imports == ("src", ".")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_that_may_not_be_entered_holds_no_tool(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)

    box = toolbox({"PATH": f"{closed}:/usr/bin"}, root=tmp_path / "project")

    assert box.path == "/usr/bin"
