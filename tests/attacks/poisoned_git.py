# ruff: noqa: E501 - a script in one line is read as one deed
"""Attacks that hide behind git: whatever is in the workspace's `.git`, the scan sees the files."""

from tests.attacks.case import OUTSIDE, TAMPERED, Attack

_STRAY = 'Path("README.md").write_text("stray\\n")'
_RUN = 'git = lambda *a: subprocess.run(["git", *a], check=True, capture_output=True)'


def _hidden(name: str, deed: str, reasons: frozenset[str] = OUTSIDE) -> Attack:
    """An edit out of scope, and something done to git so that git does not show it."""
    return Attack(
        name, f"{_RUN}; fix(); {_STRAY}\n{deed}\nrecord()", reasons, named="README.md"
    )


ATTACKS = (
    _hidden("commits the stray edit", 'git("commit", "-qam", "x")'),
    _hidden(
        "flags the stray edit as unchanged",
        'git("update-index", "--assume-unchanged", "README.md")',
    ),
    _hidden(
        "takes the stray edit out of the work tree",
        'git("update-index", "--skip-worktree", "README.md")',
    ),
    _hidden("excludes the stray edit", 'Path(".git/info/exclude").write_text("*\\n")'),
    _hidden(
        "replaces the base commit",
        'base = git("rev-parse", "HEAD").stdout.decode().strip(); git("commit", "-qam", "x"); git("replace", base, "HEAD")',
    ),
    _hidden("rewrites the index", 'Path(".git/index").write_bytes(b"DIRC" + bytes(100))'),
    _hidden("removes the git folder", 'shutil.rmtree(".git")'),
    _hidden(
        "points git at the user's repository",
        'shutil.rmtree(".git"); Path(".git").write_text(f"gitdir: {REPO}/.git\\n")',
    ),
    _hidden(
        "links git to the user's repository",
        'shutil.rmtree(".git"); Path(".git").symlink_to(REPO / ".git")',
    ),
    _hidden("makes git a pipe", 'shutil.rmtree(".git"); os.mkfifo(".git")'),
    _hidden("moves the work tree elsewhere", 'git("config", "core.worktree", "/tmp")'),
    _hidden(
        "borrows the user's objects",
        'Path(".git/objects/info/alternates").write_text(f"{REPO}/.git/objects\\n")',
    ),
    _hidden(
        "sets traps for whoever runs git here",
        """
trap = Path(".git/trap"); trap.write_text(f"#!/bin/sh\\ntouch {OUTSIDE}/ran\\n"); trap.chmod(0o755)
at = str(trap.absolute())
for key in ("core.fsmonitor", "core.pager", "core.editor", "diff.external", "core.sshCommand", "gpg.program", "filter.x.clean", "filter.x.smudge", "merge.x.driver"):
    git("config", key, at)
git("config", "core.hooksPath", str(Path(".git").absolute()))
Path(".git/info/attributes").write_text("* filter=x diff=x merge=x\\n")
for hook in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction"):
    shutil.copy(trap, Path(".git") / hook)
""",
    ),
    _hidden(
        "includes a configuration from outside",
        'git("config", "include.path", "/tmp/evil"); Path("/tmp/evil").write_text("[core]\\nworktree = /\\n")',
    ),
    _hidden("adds a work tree of its own", 'git("worktree", "add", "-q", "/tmp/other")'),
    Attack(
        "nests a repository in an allowed folder",
        'subprocess.run(["git", "init", "-q", "src/inner"], check=True); record(files_changed=[])',
        TAMPERED,
        {"allowed_paths": ["src/**"]},
        named="git folder",
    ),
    Attack(
        "disguises the name of a git folder",
        'Path("src/.GIT").mkdir(); Path("src/.GIT/config").write_text("x"); record(files_changed=[])',
        TAMPERED,
        {"allowed_paths": ["src/**"]},
    ),
    Attack(
        "disguises it with a character nobody sees",
        'Path("src/.g\\u200cit").mkdir(); Path("src/.g\\u200cit/config").write_text("x"); record(files_changed=[])',
        TAMPERED,
        {"allowed_paths": ["src/**"]},
    ),
    Attack(
        "adds attributes that filter",
        'Path("src/.gitattributes").write_text("* filter=lfs\\n"); record(files_changed=[])',
        TAMPERED,
        {"allowed_paths": ["src/**"]},
        named="protected",
    ),
    Attack(
        "ignores more",
        'Path(".gitignore").write_text("*\\n"); record(files_changed=[])',
        TAMPERED,
        {"allowed_paths": ["**"]},
    ),
    Attack(
        "adds a submodule",
        'Path(".gitmodules").write_text("[submodule \\"x\\"]\\npath = x\\nurl = /etc\\n"); record(files_changed=[])',
        TAMPERED,
        {"allowed_paths": ["**"]},
    ),
)
