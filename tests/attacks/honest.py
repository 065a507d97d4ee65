# ruff: noqa: E501 - a script in one line is read as one deed
"""Honest executors: what people, editors, formatters and tools do. None of it may be refused."""

from dataclasses import dataclass, field
from typing import Any

from tests.attacks.case import PYTEST, SMOKE

_SRC = {"allowed_paths": ["src/**"]}
_SYNC = {"src/github_sync.py": "M"}


@dataclass(frozen=True, slots=True)
class Honest:
    """A script for the executor, and exactly what must have changed when it was accepted."""

    name: str
    script: str
    changes: dict[str, str] = field(default_factory=lambda: dict(_SYNC))
    manifest: dict[str, Any] = field(default_factory=dict)
    dropped: str = ""
    """A leftover that must have been noticed and left behind."""


def _with_dust(name: str, deed: str, dropped: str) -> Honest:
    """A fix beside which a tool leaves something that is nobody's concern."""
    return Honest(name, f"{deed}\nfix(); record()", dict(_SYNC), {}, dropped)


def _named(name: str) -> Honest:
    path = f"src/{name}"
    script = f"Path({path!r}).write_text('x'); record(files_changed=[{path!r}])"
    return Honest(f"names a file {name}", script, {path: "A"}, dict(_SRC))


def _content(name: str, content: bytes) -> Honest:
    script = f"Path('src/new').write_bytes({content!r}); record(files_changed=['src/new'])"
    return Honest(name, script, {"src/new": "A"}, dict(_SRC))


RECORDS = (
    Honest("fixes and says so", "fix(); record()"),
    Honest("fixes and says nothing", "fix()"),
    Honest(
        "says it on its output",
        'fix(); print("working"); print(json.dumps({"status": "done", "files_changed": ["src/github_sync.py"]}))',
    ),
    Honest(
        "names its file with a dot", 'fix(); record(files_changed=["./src/github_sync.py"])'
    ),
    Honest(
        "says what it ran",
        'fix(); record(commands_run=["pytest -q"], risks=["the cap"], notes="n" * 5_000)',
    ),
    Honest(
        "names the step instead of the task",
        "fix(); record(); p = Path(os.environ['AGENT_RUN_RECORD']); d = json.loads(p.read_text()); d['step_id'] = d.pop('task_id'); p.write_text(json.dumps(d))",
    ),
    Honest(
        "is as confident as it must be",
        "fix(); record(confidence=0.9)",
        manifest={"min_confidence": 0.7},
    ),
    Honest(
        "gives the output it was asked for",
        'fix(); record(output={"count": 3})',
        manifest={
            "output_schema": {"type": "object", "properties": {"count": {"type": "integer"}}}
        },
    ),
    Honest(
        "spends what it may",
        "fix(); record(tokens_used=10, cost_usd=0.5)",
        manifest={"budget": {"max_attempts": 1, "max_tokens": 10, "max_cost_usd": 1}},
    ),
    Honest("speaks other languages", 'fix(); record(notes="läuft 日本 🎉")'),
)
EDITS = (
    Honest(
        "adds a file by a pattern",
        'Path("src/new.py").write_text("x"); record(files_changed=["src/new.py"])',
        {"src/new.py": "A"},
        {"allowed_paths": ["src/*.py"]},
    ),
    Honest(
        "adds a package",
        'p = Path("src/pkg/inner"); p.mkdir(parents=True); (p / "__init__.py").write_text(""); record(files_changed=["src/pkg/inner/__init__.py"])',
        {"src/pkg/inner/__init__.py": "A"},
        _SRC,
    ),
    Honest(
        "may write in a folder that is named",
        'Path("docs/new.md").write_text("x"); record(files_changed=["docs/new.md"])',
        {"docs/new.md": "A"},
        {"allowed_paths": ["docs"]},
    ),
    Honest(
        "renames a file",
        'SYNC.rename("src/sync.py"); record(files_changed=["src/sync.py", "src/github_sync.py"])',
        {"src/sync.py": "A", "src/github_sync.py": "D"},
        _SRC,
    ),
    Honest(
        "renames a file with git",
        'subprocess.run(["git", "mv", "src/other.py", "src/another.py"], check=True); record(files_changed=["src/other.py", "src/another.py"])',
        {"src/other.py": "D", "src/another.py": "A"},
        _SRC,
    ),
    Honest(
        "deletes an allowed file",
        'Path("src/other.py").unlink(); record(files_changed=["src/other.py"])',
        {"src/other.py": "D"},
        _SRC,
    ),
    Honest(
        "empties a file",
        'Path("src/other.py").write_text(""); record(files_changed=["src/other.py"])',
        {"src/other.py": "M"},
        _SRC,
    ),
    Honest("makes a file runnable", "SYNC.chmod(0o755); record()"),
    Honest(
        "adds a program",
        'p = Path("src/run.sh"); p.write_text("#!/bin/sh\\n"); p.chmod(0o755); record(files_changed=["src/run.sh"])',
        {"src/run.sh": "A"},
        _SRC,
    ),
    Honest(
        "replaces a file as editors do",
        'Path("src/.tmp123").write_text(FIXED); os.replace("src/.tmp123", SYNC); record()',
    ),
    Honest(
        "replaces a file over the temporary folder",
        'Path("/tmp/new").write_text(FIXED); shutil.move("/tmp/new", SYNC); record()',
    ),
    Honest(
        "edits with sed",
        'subprocess.run(["sed", "-i", "s/60.0/30.0/", str(SYNC)], check=True); record()',
    ),
    Honest(
        "edits with a patch",
        'subprocess.run(["git", "apply"], input=b"--- a/src/other.py\\n+++ b/src/other.py\\n@@ -1 +1 @@\\n-VALUE = 1\\n+VALUE = 2\\n", check=True); record(files_changed=["src/other.py"])',
        {"src/other.py": "M"},
        _SRC,
    ),
    Honest(
        "formats with a real formatter",
        'SYNC.write_text(FIXED.replace("  ", "      ")); subprocess.run(["ruff", "format", "-q", "--isolated", str(SYNC)], check=True); record()',
        dropped=".ruff_cache",
    ),
    Honest(
        "changes many files",
        'for n in range(300): Path(f"src/gen{n}.json").write_text(str(n))\nrecord(files_changed=[f"src/gen{n}.json" for n in range(300)])',
        {f"src/gen{n}.json": "A" for n in range(300)},
        _SRC,
    ),
    Honest(
        "edits the very test file it may edit",
        'p = Path("tests/test_github_sync.py"); p.write_text(p.read_text() + "\\n\\ndef test_more(): pass\\n"); record(files_changed=[str(p)])',
        {"tests/test_github_sync.py": "M"},
        {"allowed_paths": ["tests/test_github_sync.py"]},
    ),
    Honest(
        "edits the very configuration it may edit",
        'Path("pytest.ini").write_text("[pytest]\\npythonpath = src .\\n"); record(files_changed=["pytest.ini"])',
        {"pytest.ini": "M"},
        {"allowed_paths": ["pytest.ini"]},
    ),
    Honest(
        "writes build output it was asked for",
        'Path("dist").mkdir(); Path("dist/app.js").write_text("x"); record(files_changed=["dist/app.js"])',
        {"dist/app.js": "A"},
        {"allowed_paths": ["dist/**"]},
    ),
    Honest(
        "edits elsewhere and puts it back",
        'p = Path("README.md"); old = p.read_text(); p.write_text("x"); fix(); p.write_text(old); record()',
    ),
    Honest(
        "touches files without changing them",
        'os.utime("README.md", (1, 1)); Path("README.md").chmod(0o664); fix(); record()',
    ),
    Honest(
        "adds and removes a file elsewhere",
        'p = Path("scratch.txt"); p.write_text("x"); fix(); p.unlink(); record()',
    ),
    Honest(
        "leaves an empty folder", 'Path("empty/inner").mkdir(parents=True); fix(); record()'
    ),
)
CONTENTS = (
    _content("adds an empty file", b""),
    _content("adds a binary file", bytes(range(256)) * 64),
    _content("adds a file of another line ending", b"a\r\nb\r\n"),
    _content("adds a file without a last line ending", b"a\nb"),
    _content("adds a file of another encoding", "äöü".encode("latin-1")),
    _content("adds a file with a mark of its byte order", "\ufeffx".encode()),
    _content("adds a file of merge markers", b"<<<<<<< ours\n=======\n>>>>>>> theirs\n"),
    Honest(
        "adds a large file",
        'Path("src/data.bin").write_bytes(os.urandom(3 << 20)); record(files_changed=["src/data.bin"])',
        {"src/data.bin": "A"},
        _SRC,
    ),
)
NAMES = tuple(
    map(
        _named,
        (
            *(
                "with space.py",
                "-dash.py",
                "#hash.py",
                "$dollar.py",
                "per%cent.py",
                "semi;colon.py",
            ),
            *(
                "quote's.py",
                'double"s.py',
                "[id].py",
                "star*.py",
                "question?.py",
                "paren(s).py",
            ),
            *(
                "ümlaut.py",
                "日本.py",
                "emoji🎉.py",
                ".hidden",
                "two..dots.py",
                "x" * 200,
                "a,b&c.py",
            ),
            *(
                "tick`s.py",
                "no-extension",
                "UPPER.PY",
                "~home.py",
                "@at.py",
                "a=b.py",
                "{brace}.py",
            ),
        ),
    )
)
DUST = (
    _with_dust(
        "compiles",
        'subprocess.run([sys.executable, "-m", "compileall", "-q", "src"], check=True)',
        "src/__pycache__/",
    ),
    _with_dust(
        "leaves a backup as editors do",
        'Path("src/github_sync.py~").write_text("x")',
        "src/github_sync.py~",
    ),
    _with_dust(
        "leaves a swap file as editors do",
        'Path("src/.github_sync.py.swp").write_bytes(b"x")',
        "src/.github_sync.py.swp",
    ),
    _with_dust(
        "leaves a lock as editors do",
        'Path("src/.#github_sync.py").symlink_to("me@host.123")',
        "src/.#github_sync.py",
    ),
    _with_dust(
        "leaves caches",
        'for n in (".pytest_cache", ".mypy_cache", ".hypothesis"):\n    Path(n).mkdir(); (Path(n) / "x").write_text("x")',
        ".mypy_cache/",
    ),
    _with_dust("measures coverage", 'Path(".coverage").write_bytes(b"x")', ".coverage"),
    _with_dust(
        "builds",
        'Path("build/lib").mkdir(parents=True); Path("build/lib/x.py").write_text("x")',
        "build/",
    ),
    _with_dust(
        "installs packages of node",
        'p = Path("node_modules/.bin"); p.mkdir(parents=True); (p / "x").symlink_to("../x/cli.js")',
        "node_modules/",
    ),
    _with_dust(
        "makes a virtual environment",
        'subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], check=True)',
        ".venv/",
    ),
)
GIT = (
    Honest(
        "commits its work",
        'fix(); subprocess.run(["git", "commit", "-qam", "fix"], check=True); record()',
    ),
    Honest(
        "works on a branch",
        'subprocess.run(["git", "checkout", "-qb", "work"], check=True); fix(); subprocess.run(["git", "commit", "-qam", "fix"], check=True); record()',
    ),
    Honest(
        "stashes and pops",
        'fix(); subprocess.run("git stash -q && git stash pop -q", shell=True, check=True); record()',
    ),
    Honest(
        "looks at its own change",
        'fix(); out = subprocess.run(["git", "diff", "--stat"], check=True, capture_output=True, text=True).stdout; assert "github_sync" in out, out; record()',
    ),
    Honest(
        "collects garbage",
        'fix(); subprocess.run("git add -A && git commit -qm x && git gc -q", shell=True, check=True); record()',
    ),
)
TOOLS = (
    Honest(
        "uses its home and the temporary folder",
        'for n in (os.environ["HOME"], os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp", "/dev/shm"):\n    (Path(n) / "x").write_text("x")\nfix(); record()',
    ),
    Honest(
        "works in several processes",
        'import multiprocessing as m\nwith m.Pool(2) as pool: assert pool.map(len, ["a", "bb"]) == [1, 2]\nfix(); record()',
    ),
    Honest(
        "works in several threads",
        "from concurrent.futures import ThreadPoolExecutor as T\nwith T(8) as pool: list(pool.map(time.sleep, [0.01] * 16))\nfix(); record()",
    ),
    Honest(
        "serves itself over loopback",
        'import http.server, threading, urllib.request\ns = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler); threading.Thread(target=s.serve_forever, daemon=True).start()\nassert b"sync" in urllib.request.urlopen(f"http://127.0.0.1:{s.server_port}/README.md").read(); fix(); record()',
    ),
    Honest(
        "shares memory",
        "from multiprocessing.shared_memory import SharedMemory as S\ns = S(create=True, size=99); s.close(); s.unlink(); fix(); record()",
    ),
    Honest(
        "uses a database",
        'import sqlite3; c = sqlite3.connect("/tmp/x.db"); c.execute("create table t(x)"); c.close(); fix(); record()',
    ),
    Honest(
        "uses a socket with a name",
        'import socket; s = socket.socket(socket.AF_UNIX); s.bind("/tmp/sock"); s.listen(); fix(); record()',
    ),
    Honest(
        "uses a shell and pipes",
        'assert subprocess.run("ls src | sort | head -1 | tr a-z A-Z", shell=True, capture_output=True, text=True, check=True).stdout.strip() == "GITHUB_SYNC.PY"; fix(); record()',
    ),
    Honest("talks a lot", 'for _ in range(2_000): print("x" * 500)\nfix(); record()'),
    Honest(
        "complains on the way",
        'print("warning", file=sys.stderr); subprocess.run(["false"], check=False); fix(); record()',
    ),
    Honest(
        "forgets a helper that runs on", 'fix(); record(); subprocess.Popen(["sleep", "60"])'
    ),
    Honest(
        "reads its papers",
        'brief = Path(os.environ["AGENT_RUN_BRIEF"]).read_text(); m = json.loads(Path(os.environ["AGENT_RUN_MANIFEST"]).read_text())\nassert m["task_id"] == os.environ["AGENT_RUN_TASK_ID"] == "repo-142" and m["objective"] in brief and os.environ["AGENT_RUN_ATTEMPT"] == "1" and int(os.environ["AGENT_RUN_CLAIM"]) > 0 and sys.stdin.read() == ""; fix(); record()',
    ),
)
_DISTRIBUTED = (
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 pytest -p xdist -n 2 tests/test_github_sync.py -q"
)
CHECKED = (
    Honest(
        "passes the tests and the smoke test",
        "fix(); record()",
        manifest={"verification": [{"run": PYTEST, "min_passed": 3}, SMOKE]},
    ),
    Honest(
        "passes tests that stop at the first failure",
        "fix(); record()",
        manifest={"verification": [f"{PYTEST} -x -v --ff -rA"]},
    ),
    Honest(
        "passes tests that are spread over processes",
        "fix(); record()",
        manifest={"verification": [{"run": _DISTRIBUTED, "min_passed": 3}]},
    ),
    Honest(
        "passes tests among the plugins of an environment",
        "fix(); record()",
        manifest={"verification": ["python -m pytest -q"]},
    ),
    Honest(
        "keeps what held",
        "fix(); record()",
        manifest={
            "invariants": ["python -m py_compile src/other.py", "test -d .git && git status"]
        },
    ),
    Honest(
        "stays small", "fix(); record()", manifest={"max_diff_lines": 40, "max_diff_files": 1}
    ),
)
HONEST = (*RECORDS, *EDITS, *CONTENTS, *NAMES, *DUST, *GIT, *TOOLS, *CHECKED)
