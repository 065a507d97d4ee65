"""Which paths a task may change: one rule for the brief, the fence, the scan and the gates.

A path is relative, with `/` between its parts.
`*` and `?` stay inside one part, `[ab]` is one of these characters, and `**` as a whole
part stands for any number of parts, none included.
A pattern also matches the path that is spelled exactly like it, so `app/[id]/page.tsx`
names that file; a pattern that ends in `/` means everything below that folder.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final, Literal, TypeAlias

Standing: TypeAlias = Literal["allowed", "outside", "protected", "ephemeral"]
"""How a path stands to a task: may change, may not, may never, or is nobody's concern."""

PROTECTED: Final = (
    # what judges the work
    *("**/tests/**", "**/test/**", "**/__tests__/**", "**/spec/**"),
    *("**/test_*.py", "**/*_test.py", "**/*_test.go", "**/*.test.*", "**/*.spec.*"),
    *("**/conftest.py", "**/pytest.ini", "**/.pytest.ini", "**/pytest.toml", "**/tox.ini"),
    *("**/.pytest.toml", "**/noxfile.py", "**/setup.cfg", "**/.coveragerc", "**/mypy.ini"),
    *("**/.mypy.ini", "**/ruff.toml", "**/.ruff.toml", "**/.flake8", "**/.pylintrc"),
    *("**/pyrightconfig.json", "**/tsconfig*.json", "**/jest.config.*", "**/vitest.config.*"),
    *("**/babel.config.*", "**/.babelrc*", "**/.mocharc.*", "**/eslint.config.*"),
    *("**/.eslintrc*", "**/Makefile", "**/GNUmakefile", "**/justfile", "**/.justfile"),
    # what Python runs before anything else
    *("**/sitecustomize.py", "**/usercustomize.py", "**/*.pth", "**/pyvenv.cfg"),
    *("**/sitecustomize/**", "**/usercustomize/**", "**/*.egg-link"),
    # what builds, ships and installs
    *(".github/**", ".gitlab/**", ".gitlab-ci.yml", ".circleci/**", ".buildkite/**"),
    *(".travis.yml", "azure-pipelines.yml", "Jenkinsfile", "bitbucket-pipelines.yml"),
    *(".pre-commit-config.yaml", ".pre-commit-hooks.yaml", ".husky/**", "lefthook.yml"),
    *("**/pyproject.toml", "**/setup.py", "**/requirements*.txt", "**/constraints*.txt"),
    *("**/Pipfile", "**/Pipfile.lock", "**/poetry.lock", "**/uv.lock", "**/uv.toml"),
    *("**/package.json", "**/package-lock.json", "**/yarn.lock", "**/pnpm-lock.yaml"),
    *("**/.npmrc", "**/.yarnrc*", "**/Cargo.toml", "**/Cargo.lock", "**/build.rs"),
    *("**/.cargo/**", "**/go.mod", "**/go.sum", "**/Gemfile", "**/Gemfile.lock"),
    *("**/pom.xml", "**/build.gradle*", "**/settings.gradle*", "**/.mvn/**"),
    # what git and the shell obey
    *("**/.gitattributes", "**/.gitignore", "**/.gitmodules", "**/.lfsconfig"),
    *("**/.git-blame-ignore-revs", "**/.mailmap", "**/.envrc", "**/.env", "**/.env.*"),
    *("**/.python-version", "**/.tool-versions", "**/mise.toml", "**/.mise.toml"),
    # what agents and editors obey
    *("**/.claude/**", "**/CLAUDE.md", "**/CLAUDE.local.md", "**/AGENTS.md", "**/.mcp.json"),
    *("**/AGENTS.override.md", "**/GEMINI.md", "**/.gemini/**", "**/.codex/**"),
    *("**/.opencode/**", "**/opencode.json*", "**/.aider*", "**/.cursor/**"),
    *("**/.cursorrules", "**/.windsurf/**", "**/.windsurfrules", "**/.continue/**"),
    *("**/.vscode/**", "**/.idea/**", "**/.devcontainer/**", "**/.clinerules/**"),
    *("agent-run.toml", ".agent-run/**"),
)
"""Never changed by an executor unless `allowed_paths` names the very file."""

EPHEMERAL: Final = (
    *("**/__pycache__/**", "**/*.pyc", "**/*.pyo", "**/.pytest_cache/**", "**/.cache/**"),
    *("**/.mypy_cache/**", "**/.ruff_cache/**", "**/.hypothesis/**", "**/.tox/**"),
    *("**/.nox/**", "**/.venv/**", "**/venv/**", "**/node_modules/**", "**/build/**"),
    *("**/dist/**", "**/*.egg-info/**", "**/.eggs/**", "**/.coverage", "**/.coverage.*"),
    *("**/htmlcov/**", "**/target/**", "**/.gradle/**", "**/.next/**", "**/.nuxt/**"),
    *("**/.turbo/**", "**/.parcel-cache/**", "**/.nyc_output/**", "**/.import_linter_cache/**"),
    *("**/.ipynb_checkpoints/**", "**/.DS_Store", "**/Thumbs.db", "**/*.swp", "**/*.swo"),
    *("**/*~", "**/.#*", "**/.aider.chat.history.md", "**/.aider.input.history"),
    *("**/.aider.tags.cache*/**", "**/.nfs*", "**/.fuse_hidden*"),
)
"""Caches, build output, editor leftovers: dropped and noted where the base has no such file."""

_WILD: Final = re.compile(r"[*?\[]")


def is_literal(pattern: str) -> bool:
    """Say whether `pattern` names one file and nothing else."""
    return not _WILD.search(pattern) and not pattern.endswith("/")


def matches(pattern: str, path: str) -> bool:
    """Say whether `pattern` covers `path`."""
    return pattern == path or _expression(pattern).fullmatch(path) is not None


def fault_of(pattern: str) -> str | None:
    """Say in one sentence why `pattern` cannot be a path below the root, or None if it can."""
    if not pattern or pattern.startswith("/") or "\\" in pattern or "\0" in pattern:
        return f"path {pattern!r} is not a relative path below the root"
    parts = pattern.removesuffix("/").split("/")
    if any(part in {"", ".", ".."} for part in parts):
        return f"path {pattern!r} has a part that is empty, '.' or '..'"
    if parts[0].lower() == ".git":
        return f"path {pattern!r} lies in git's own folder, which is never part of a result"
    return None


@dataclass(frozen=True, slots=True)
class Scope:
    """What one task may change, ready to be asked about many paths."""

    allowed: tuple[str, ...]
    """Globs; nothing else may change."""
    protected: tuple[str, ...] = ()
    """Globs that beat `allowed`, even where it names the very file."""
    _allowed: Callable[[str], bool] = field(init=False, repr=False, compare=False)
    _protected: Callable[[str], bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        below = tuple(f"{one}/**" for one in self.protected if is_literal(one))
        folded = tuple(one.casefold() for one in (*self.protected, *below))
        object.__setattr__(self, "_allowed", any_of(self.allowed))
        object.__setattr__(self, "_protected", any_of(folded))

    def standing(self, path: str, *, in_base: bool = True) -> Standing:
        """Say how `path` stands; leftovers count as such only where the base has no file."""
        folded = path.casefold()
        if self._protected(folded):
            return "protected"
        if path in self.allowed:
            return "allowed"
        if not in_base and self.is_leftover(path):
            return "ephemeral"
        if _ours(folded):
            return "protected"
        return "allowed" if self._allowed(path) else "outside"

    def is_leftover(self, path: str) -> bool:
        """Say whether `path` is a cache or build output that no allowed pattern asks for."""
        return _leftover(path) and not any(matches(one, path) for one in self._asked())

    @property
    def asks_for_leftovers(self) -> bool:
        """Whether a pattern itself reads like a leftover, as `dist/**`: then it is meant."""
        return bool(self._asked())

    def _asked(self) -> tuple[str, ...]:
        below = (f"{one.removesuffix('/')}/x" for one in self.allowed)
        return tuple(
            one
            for one, inner in zip(self.allowed, below, strict=True)
            if _leftover(one) or _leftover(inner)
        )

    def below_folders(self, is_folder: Callable[[str], bool]) -> "Scope":
        """Return the scope in which an allowed name of a folder means all that is below it."""
        allowed = tuple(
            f"{one}/**" if is_literal(one) and is_folder(one) else one for one in self.allowed
        )
        return Scope(allowed, self.protected)


def any_of(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return a test that is true where any of `patterns` matches."""
    names = frozenset(patterns)
    globs = [_source(one) for one in names if not is_literal(one)]
    expression = re.compile("|".join(globs), re.DOTALL) if globs else None

    def covered(path: str) -> bool:
        return path in names or (expression is not None and bool(expression.fullmatch(path)))

    return covered


@lru_cache(maxsize=1_024)
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(_source(pattern), re.DOTALL)


def _source(pattern: str) -> str:
    """Return the regular expression; atomic groups keep hostile names from costing much."""
    runs: list[list[str]] = [[]]
    for part in (pattern + "**" if pattern.endswith("/") else pattern).split("/"):
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(_part(part))
    first, *between = ("/".join(run) for run in runs)
    if not between:
        return f"(?:{first})"
    last = between.pop()
    # Of the places where a run fits, the leftmost is as good as any other.
    middle = "".join(f"(?>(?:[^/]+/)*?{run}/)" for run in between if run)
    start = f"{first}/" if first else ""
    return f"(?:{start}{middle}(?:[^/]+/)*{last or '[^/]+'})"


def _part(part: str) -> str:
    chunks, place = [""], 0
    while place < len(part):
        letter = part[place]
        end = _class_end(part, place) if letter == "[" else 0
        if end:
            chunks[-1] += _class(part[place + 1 : end])
            place = end
        elif letter == "*":
            chunks.append("")
        else:
            chunks[-1] += "[^/]" if letter == "?" else re.escape(letter)
        place += 1
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1] if chunk)
    return f"{chunks[0]}{middle}[^/]*{chunks[-1]}"


def _class_end(part: str, start: int) -> int:
    """Return where the class that opens at `start` closes, or 0 if it never does."""
    first = start + 2 if part[start + 1 : start + 2] in {"!", "^"} else start + 1
    return max(part.find("]", first + 1), 0)


def _class(inner: str) -> str:
    negated = inner[:1] in {"!", "^"}
    members = re.escape(inner[1:] if negated else inner).replace(r"\-", "-")
    try:
        re.compile(f"[{members}]")
    except re.error:  # a range that runs backwards, as `[z-a]`, is just three characters
        members = members.replace("-", r"\-")
    return f"[^/{members}]" if negated else f"(?!/)[{members}]"


# Made when first asked for: most commands read a manifest and judge no path.
@cache
def _protected_names() -> Callable[[str], bool]:
    return any_of(one.casefold() for one in PROTECTED)


@cache
def _leftover_names() -> Callable[[str], bool]:
    return any_of(EPHEMERAL)


def _ours(path: str) -> bool:
    return _protected_names()(path)


def _leftover(path: str) -> bool:
    return _leftover_names()(path)


__all__ = [
    "EPHEMERAL",
    "PROTECTED",
    "Scope",
    "Standing",
    "any_of",
    "fault_of",
    "is_literal",
    "matches",
]
