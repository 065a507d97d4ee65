"""How commands end: by themselves, by a limit or by us, and always whole."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest

from agent_run.errors import ContractError
from agent_run.ports.fence import Fence, Limits, Stream
from agent_run.workspace.fence.policy import Tier
from tests.workspace.fence.conftest import Place, Run

DAEMON = """
def daemon(body):
    child = '''
import os, signal, sys, time
for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
''' + body
    subprocess.run([sys.executable, '-c', child, str(WORK)])
"""
STAY = "time.sleep(1000)"
TICK = (
    "import pathlib; p = pathlib.Path(sys.argv[1], 'beat')\n"
    "while True: p.write_text(str(time.time_ns())); time.sleep(0.01)"
)

Alive = Callable[[], list[int]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sys.exit(0)", ("exited", 0, None)),
        ("sys.exit(7)", ("exited", 7, None)),
        ("os.kill(os.getpid(), 9)", ("signalled", None, 9)),
        ("os.abort()", ("signalled", None, 6)),
    ],
)
def test_a_command_that_ends_by_itself_is_told_as_it_was(
    words: str, expected: object, place: Place, any_fence: Fence, run: Run
) -> None:
    finished = run(any_fence, place.launch(words))

    assert (finished.ended, finished.exit_code, finished.signal) == expected


@pytest.mark.parametrize(
    ("argv", "code"), [(("no-such-program",), 127), (("/etc/passwd",), 126)]
)
def test_a_command_that_cannot_start_is_said_to_be_so(
    argv: tuple[str, ...], code: int, place: Place, any_fence: Fence, run: Run
) -> None:
    finished = run(any_fence, place.launch("", argv=argv))

    assert (finished.ended, finished.exit_code) == ("unstartable", code)
    assert repr(argv[0]) in finished.detail


def test_a_daemon_is_dead_when_its_command_has_exited(
    place: Place, any_fence: Fence, run: Run, marked: Alive
) -> None:
    finished = run(
        any_fence,
        place.launch(
            DAEMON + f"daemon({TICK!r})\nwhile not (WORK / 'beat').exists(): time.sleep(0.01)"
        ),
    )

    assert (finished.ended, finished.exit_code) == ("exited", 0), finished.stderr
    assert marked() == []
    beat = (place.work / "beat").read_bytes()
    time.sleep(0.1)
    assert (place.work / "beat").read_bytes() == beat


def test_a_time_out_ends_a_tree_that_ignores_every_signal(
    place: Place, any_fence: Fence, run: Run, marked: Alive
) -> None:
    code = DAEMON + f"daemon({STAY!r}); signal.signal(15, signal.SIG_IGN); {STAY}"

    finished = run(any_fence, place.launch(code, limits=Limits(wall_sec=1.5)))

    assert finished.ended == "timeout"
    assert finished.detail == "ran longer than 1.5 s"
    assert finished.elapsed_ms < 20_000
    assert marked() == []


def test_a_cancelled_run_waits_for_the_death_of_the_tree(
    place: Place, any_fence: Fence, marked: Alive
) -> None:
    code = DAEMON + f"daemon({TICK!r}); {STAY}"

    async def main() -> bool:
        async with anyio.create_task_group() as group:
            group.start_soon(any_fence.run, place.launch(code))
            with anyio.fail_after(30):
                while not (place.work / "beat").exists():  # noqa: ASYNC110 - another process
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        return marked() == []

    assert anyio.run(main)


def test_a_daemon_that_keeps_the_output_open_keeps_nobody_waiting(
    place: Place, any_fence: Fence, run: Run
) -> None:
    finished = run(any_fence, place.launch(DAEMON + f"daemon({STAY!r}); print('over')"))

    assert finished.stdout == b"over\n"
    assert finished.elapsed_ms < 20_000
    assert not finished.stdout_truncated


def test_too_much_output_ends_the_command_loudly(
    place: Place, any_fence: Fence, run: Run
) -> None:
    code = "while True: os.write(1, b'x' * 65536)"

    finished = run(any_fence, place.launch(code, limits=Limits(output_bytes=1_000_000)))

    assert finished.ended == "output_limit"
    assert len(finished.stdout) == 1_000_000
    assert finished.stdout_truncated
    assert not finished.stderr_truncated
    assert finished.detail == "wrote more than 1000000 bytes of output"


def test_much_output_within_the_limit_is_kept_whole(
    place: Place, any_fence: Fence, run: Run
) -> None:
    code = "sys.stdout.write('x' * 24_000_000); sys.stderr.write('e' * 1_000_000)"

    finished = run(any_fence, place.launch(code, limits=Limits(output_bytes=25_000_000)))

    assert (finished.ended, len(finished.stdout), len(finished.stderr)) == (
        "exited",
        24_000_000,
        1_000_000,
    )
    assert not finished.stdout_truncated


def test_a_command_that_waits_for_a_fifo_is_ended_by_its_clock(
    place: Place, any_fence: Fence, run: Run
) -> None:
    code = "os.mkfifo(WORK / 'p'); open(WORK / 'p').read()"

    finished = run(any_fence, place.launch(code, limits=Limits(wall_sec=1)))

    assert finished.ended == "timeout"


BURN = "'import time\\nwhile time.process_time() < .3: pass'"
THREAD = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
SIXTY = "\ntime.sleep(60)"
LIMITS = {
    "cpu": ("while True: pass", Limits(wall_sec=60, cpu_sec=1)),
    "cpu of children": (
        f"for _ in range(99): subprocess.run([sys.executable, '-c', {BURN}])",
        Limits(wall_sec=60, cpu_sec=1),
    ),
    "memory": ("x = bytearray(400_000_000)" + SIXTY, Limits(wall_sec=60, memory_mb=128)),
    "memory that is hidden": (
        "libc.prctl(4, 0, 0, 0, 0); x = bytearray(400_000_000)" + SIXTY,
        Limits(wall_sec=60, memory_mb=128),
    ),
    "memory of children": (
        "for _ in range(4): os.fork() or (bytearray(60_000_000), time.sleep(60))" + SIXTY,
        Limits(wall_sec=60, memory_mb=128),
    ),
    "processes": (
        "for _ in range(40): subprocess.Popen(['sleep', '60'])" + SIXTY,
        Limits(wall_sec=60, processes=20),
    ),
    "threads": (
        f"import threading\nfor _ in range(40): {THREAD}" + SIXTY,
        Limits(wall_sec=60, processes=20),
    ),
    "disk": (
        "for n in range(60): (WORK / str(n)).write_bytes(b'x' * 1_000_000)" + SIXTY,
        Limits(wall_sec=60, disk_mb=16),
    ),
    "disk at the end": (
        "for n in range(30): (WORK / str(n)).write_bytes(b'x' * 1_000_000)",
        Limits(wall_sec=60, disk_mb=16),
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_ends_the_command_or_the_kernel_refuses_more(
    name: str, place: Place, any_fence: Fence, run: Run
) -> None:
    script, limits = LIMITS[name]

    finished = run(any_fence, place.launch(script, limits=limits))

    expected = "processes" if name == "threads" else name.split(" ", maxsplit=1)[0]
    refused = b"unavailable" in finished.stderr or b"new thread" in finished.stderr
    assert finished.ended == expected or (expected == "processes" and refused), finished
    assert finished.elapsed_ms < 50_000


def test_private_files_that_live_in_memory_count_as_memory(
    place: Place, fence: Fence, tier: Tier, run: Run
) -> None:
    code = """
import tempfile
with tempfile.TemporaryFile() as file:
    for _ in range(200): file.write(bytes(1_000_000))
    time.sleep(1)
"""

    finished = run(fence, place.launch(code, limits=Limits(wall_sec=60, memory_mb=128)))

    assert finished.ended == ("memory" if tier == "namespaces" else "exited"), finished


def test_a_file_of_eight_terabytes_is_refused(place: Place, any_fence: Fence, run: Run) -> None:
    code = "open(WORK / 's', 'wb').truncate(8 << 40)"

    finished = run(any_fence, place.launch(code, limits=Limits(disk_mb=100)))

    assert finished.exit_code == 1
    assert b"File too large" in finished.stderr


def test_a_sparse_file_does_not_count_for_what_it_does_not_use(
    place: Place, any_fence: Fence, run: Run
) -> None:
    code = (
        "open(WORK / 's', 'wb').truncate(90 << 20); open(WORK / 't', 'wb').truncate(90 << 20)"
    )

    finished = run(any_fence, place.launch(code, limits=Limits(disk_mb=100)))

    assert (finished.ended, finished.exit_code) == ("exited", 0), finished


def test_shared_pages_count_once(place: Place, any_fence: Fence, run: Run) -> None:
    code = """
x = bytearray(80_000_000)
for _ in range(4): os.fork() or (time.sleep(1), os._exit(0))
time.sleep(1)
"""

    finished = run(any_fence, place.launch(code, limits=Limits(wall_sec=60, memory_mb=200)))

    assert (finished.ended, finished.exit_code) == ("exited", 0), finished.detail


def test_lines_arrive_while_the_command_runs(place: Place, any_fence: Fence) -> None:
    heard: list[tuple[Stream, bytes]] = []
    code = """
print('one', flush=True)
while not (WORK / 'heard').exists(): time.sleep(0.01)
print('two\\n\\nthree', end='', flush=True); print('err', file=sys.stderr)
"""

    def on_line(stream: Stream, line: bytes) -> None:
        heard.append((stream, line))
        (place.work / "heard").touch()

    async def main() -> None:
        await any_fence.run(place.launch(code), on_line=on_line)

    anyio.run(main)

    assert [line for stream, line in heard if stream == "stdout"] == [
        b"one",
        b"two",
        b"",
        b"three",
    ]
    assert ("stderr", b"err") in heard


def test_a_listener_that_fails_ends_the_command_and_is_heard(
    place: Place, any_fence: Fence, marked: Alive
) -> None:
    def on_line(stream: Stream, line: bytes) -> None:
        raise LookupError(line)

    async def main() -> None:
        await any_fence.run(place.launch(f"print('x', flush=True); {STAY}"), on_line=on_line)

    with pytest.raises(LookupError):
        anyio.run(main)
    assert marked() == []


def test_processor_time_of_the_whole_tree_is_told(
    place: Place, any_fence: Fence, run: Run
) -> None:
    burn = "import time\nwhile time.process_time() < .4: pass"
    code = f"p = subprocess.Popen([sys.executable, '-c', {burn!r}]); p.wait()"

    finished = run(any_fence, place.launch(code))

    assert 400 <= finished.cpu_ms < 5_000


def test_runs_side_by_side_do_not_meet(place: Place, any_fence: Fence) -> None:
    said: list[bytes] = []

    async def one(number: int) -> None:
        finished = await any_fence.run(place.launch(f"print({number})"))
        said.append(finished.stdout)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(one, number)

    anyio.run(main)

    assert sorted(said) == [b"0\n", b"1\n", b"2\n", b"3\n", b"4\n"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"argv": ()}, "names no program"),
        ({"argv": ("a\0b",)}, "holds a NUL"),
        ({"env": {"A=B": "x"}}, "is not a name"),
        ({"network": ("localhost",)}, "needs a port"),
        ({"network": ("a b:1",)}, "is not 'host' or 'host:port'"),
        ({"network": ("a:99999",)}, "has port '99999'"),
        ({"network": "maybe"}, "neither 'deny' nor 'allow'"),
    ],
)
def test_a_launch_that_cannot_be_meant_is_refused_in_one_sentence(
    changes: dict[str, object], sentence: str, place: Place, any_fence: Fence, run: Run
) -> None:
    launch = replace(place.launch(""), **changes)  # type: ignore[arg-type]  # wrong on purpose

    with pytest.raises(ContractError, match=sentence):
        run(any_fence, launch)


@pytest.mark.parametrize("role", ["writable", "readable"])
def test_a_grant_that_does_not_exist_is_refused(
    role: str, place: Place, any_fence: Fence, run: Run
) -> None:
    launch = place.launch("", **{role: (place.work / "missing",)})

    with pytest.raises(ContractError, match="is missing or relative"):
        run(any_fence, launch)


def test_a_working_directory_that_is_not_granted_is_refused(
    place: Place, tier: str, fence: Fence, run: Run
) -> None:
    with pytest.raises(ContractError, match="lies in nothing that is granted"):
        run(fence, place.launch("", cwd=place.out))


def test_the_interpreter_of_the_tests_is_the_one_inside(
    place: Place, any_fence: Fence, run: Run
) -> None:
    finished = run(any_fence, place.launch("print(sys.prefix)"))

    assert finished.stdout.decode().strip() == sys.prefix
