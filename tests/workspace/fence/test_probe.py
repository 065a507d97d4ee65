"""What is said about this machine, and what is refused when nothing can be held."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_run.errors import FenceUnavailable
from agent_run.ports.fence import Fence
from agent_run.workspace.fence import open_fence, probe
from agent_run.workspace.fence.statements import holds, lacks
from tests.workspace.fence.conftest import Place, Run

NOBODY = 65_534
ROOT = Path(__file__).parents[3]


def test_the_probe_names_each_mechanism_and_what_it_found() -> None:
    report = probe()

    assert [each.name for each in report.mechanisms] == [
        "namespaces",
        "landlock",
        "seccomp",
        "cgroups",
    ]
    assert all(each.detail for each in report.mechanisms)
    assert report.holds


def test_the_strongest_fence_is_taken(place: Place) -> None:
    found = {each.name: each.works for each in probe().mechanisms}

    kind = open_fence("prefer").report().kind

    if found["namespaces"]:
        assert kind.startswith("namespaces")
    elif found["landlock"]:
        assert kind == "landlock+seccomp"
    else:
        assert kind == "none"


def test_an_open_machine_is_refused_when_a_fence_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = sys.modules["agent_run.workspace.fence.probe"]
    monkeypatch.setattr(module, "_trial", lambda tier, stage: "the kernel said no")

    with pytest.raises(FenceUnavailable, match="the kernel said no"):
        open_fence("require")
    with pytest.raises(FenceUnavailable, match="'landlock' does not work"):
        open_fence("require", tier="landlock")

    assert open_fence("prefer").report().kind == "none"


def test_no_fence_says_loudly_that_nothing_is_held() -> None:
    report = open_fence("off").report()

    assert report.kind == "none"
    assert report.abi is None
    assert "nothing is fenced" in report.lacks[0]


def test_an_older_landlock_admits_more() -> None:
    counts = [len(lacks("landlock", version)) for version in (1, 3, 4, 6)]

    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 4
    assert "processes outside cannot be signalled" not in holds("landlock", 5)


def test_landlock_alone_refuses_to_hide_a_part_of_a_writable_tree(
    place: Place, fence: Fence, tier: str, run: Run
) -> None:
    hidden = place.work / "ledger"
    hidden.mkdir()
    (hidden / "pages").write_text("x")
    launch = place.launch("print(os.listdir(WORK / 'ledger'))", hidden=(hidden,))

    if tier == "landlock":
        with pytest.raises(FenceUnavailable, match="takes mount namespaces"):
            run(fence, launch)
    else:
        assert run(fence, launch).stdout == b"[]\n"


def test_a_killed_caller_takes_the_tree_with_it(
    place: Place, tier: str, marked: Callable[[], list[int]]
) -> None:
    code = f"""
import anyio, sys
from pathlib import Path
from agent_run.ports.fence import Launch
from agent_run.workspace.fence import open_fence
work = Path({str(place.work)!r})
body = "touch ready; setsid sleep 1000 & exec sleep 1000 # {place.work}"
launch = Launch(argv=("/bin/bash", "-c", body), cwd=work, env={{}}, writable=(work,))
fence = open_fence("require", tier={tier!r}, scratch=work.parent)
anyio.run(fence.run, launch)
"""
    caller = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    _until((place.work / "ready").exists)

    caller.send_signal(signal.SIGKILL)
    caller.wait()

    _until(lambda: marked() == [])


def _until(true: Callable[[], bool]) -> None:
    pause = signal.sigtimedwait
    for _ in range(3_000):
        if true():
            return
        pause(set(), 0.01)
    pytest.fail("it did not come true in 30 s")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_all_of_it_holds_for_a_plain_user() -> None:
    python = _python_of_nobody()
    if python is None:
        pytest.skip("no Python of this version can be started by a plain user")
    base = Path("/var/tmp") / f"agent-run-plain-{os.getpid()}"
    base.mkdir(mode=0o700)
    os.chown(base, NOBODY, NOBODY)
    places = [str(ROOT / "src"), str(ROOT), sysconfig.get_path("purelib")]
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    # Without a fence there is nothing that could differ between users.
    chosen = [str(Path(__file__).parent), f"--basetemp={base}/tests", "-m", "not slow"]
    told = "daemon or time_out or cancelled or limit or killed"
    files = f"test_attacks and not kernel_refuses or test_honest_work or {told}"
    chosen += ["-k", f"(namespaces or landlock) and ({files})"]
    try:
        done = subprocess.run(
            [python, *words, *chosen],
            cwd=ROOT,
            env={"PYTHONPATH": ":".join(places), "PATH": "/usr/bin:/bin", "HOME": str(base)},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(base)

    assert done.returncode == 0, done.stdout[-4_000:]


def _python_of_nobody() -> str | None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/python{version}"):
        try:
            subprocess.run([python, "-c", ""], user=NOBODY, group=NOBODY, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    return None
