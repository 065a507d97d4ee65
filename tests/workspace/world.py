"""A world with a user's repository, a home with a secret, and a state folder apart."""

import hashlib
import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_run.ports.workspace import Base, Candidate, Checkout, Stamp
from agent_run.workspace.trees import Trees, open_workspace

GIT = shutil.which("git") or "git"
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
FILES = {
    "README.md": "read me\n",
    "src/app.py": "def answer():\n    return 41\n",
    "src/util.py": "x = 1\n",
    "src/data.bin": "\0\1\2",
    "tests/test_app.py": "def test_answer(): ...\n",
    "conftest.py": "",
    "pyproject.toml": "[project]\nname = 'x'\n",
    "docs/guide.md": "guide\n",
}


def git(where: Path, *arguments: str) -> str:
    """Run the user's own git."""
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(where),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "ada@example.org" for who in ("AUTHOR", "COMMITTER")},
    }
    options = ("-c", "protocol.file.allow=always", "-c", "core.autocrlf=false")
    done = subprocess.run(
        [GIT, "-C", str(where), *options, *arguments],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"git {arguments}: {done.stderr}"
    return done.stdout.removesuffix("\n")


def commit_all(where: Path, message: str) -> str:
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", message)
    return git(where, "rev-parse", "HEAD")


def put(root: Path, path: str, content: str | bytes) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def fingerprint(*roots: Path) -> dict[str, str]:
    """Return type, mode and content of everything below `roots`."""
    seen: dict[str, str] = {}
    for root in roots:
        for folder, folders, files in os.walk(root):
            for name in (*folders, *files):
                path = Path(folder) / name
                status = path.lstat()
                what = f"{status.st_mode:o}"
                if stat.S_ISLNK(status.st_mode):
                    what += f" -> {path.readlink()}"
                elif stat.S_ISREG(status.st_mode):
                    what += " " + hashlib.sha256(path.read_bytes()).hexdigest()
                seen[str(path)] = what
    return seen


@dataclass(frozen=True, slots=True)
class World:
    """Everything an attack could reach."""

    place: Path
    repo: Path
    home: Path
    """The user's home, with a secret in it."""
    state: Path
    trees: Trees

    @property
    def secret(self) -> Path:
        return self.home / ".ssh" / "id_ed25519"

    @property
    def marker(self) -> Path:
        """A file that exists only if someone ran what must not run."""
        return self.place / "ran"

    def fingerprint(self) -> dict[str, str]:
        return fingerprint(self.repo, self.home)

    def start(self, *, claim: int = 2) -> tuple[Base, Checkout]:
        base = self.trees.base()
        return base, self.trees.prepare(base, task_id="repo-142", claim=claim)

    def files(self, base: Base, candidate: Candidate | None, name: str = "judge") -> Path:
        return self.trees.materialize(base, candidate, into=self.place / name)

    def accept(self, edits: dict[str, str | None], *, claim: int = 2) -> Candidate:
        """Let an honest executor make `edits`, and promote what it made."""
        base, checkout = self.start(claim=claim)
        for path, content in edits.items():
            if content is None:
                (checkout.path / path).unlink()
            else:
                put(checkout.path, path, content)
        candidate = self.trees.collect(checkout, allowed=("src/**", "docs/**"))
        assert candidate.refused == ()
        self.trees.promote(base, candidate, stamp=stamp(claim=claim), message="Do the work")
        self.trees.discard(checkout)
        return candidate


def stamp(*, claim: int = 2, trace: str = "trace-1") -> Stamp:
    return Stamp("repo-142", NOON, trace, claim, 1)


def new_world(tmp_path: Path) -> World:
    repo, home, state = tmp_path / "repo", tmp_path / "home", tmp_path / "state"
    repo.mkdir()
    put(home, ".ssh/id_ed25519", "SECRET KEY\n")
    git(repo, "init", "-q", "-b", "main")
    for path, content in FILES.items():
        put(repo, path, content)
    put(repo, "run.sh", "#!/bin/sh\n").chmod(0o755)
    (repo / "link.md").symlink_to("docs/guide.md")
    commit_all(repo, "first")
    return World(tmp_path, repo, home, state, open_workspace(repo, state))
