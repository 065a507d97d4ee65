"""The rule of paths, by example and by a slow second matcher that shares no code with it."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_run.contract.paths import (
    EPHEMERAL,
    PROTECTED,
    Scope,
    fault_of,
    is_literal,
    matches,
)

PARTS = st.text(alphabet="ab.*?", min_size=1, max_size=4).filter(lambda one: "**" not in one)
PATTERNS = st.lists(st.one_of(PARTS, st.just("**")), min_size=1, max_size=5).map("/".join)
NAMES = st.text(alphabet="ab.", min_size=1, max_size=4)
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)
ODD = st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=12)


def slowly(pattern: list[str], path: list[str]) -> bool:
    """Match by trying everything, part by part."""
    if not pattern:
        return not path
    head, *rest = pattern
    if head == "**":
        least = 0 if rest else 1
        return any(slowly(rest, path[skip:]) for skip in range(least, len(path) + 1))
    if not path:
        return False
    source = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in head)
    return re.fullmatch(source, path[0], re.DOTALL) is not None and slowly(rest, path[1:])


@given(PATTERNS, PATHS)
def test_a_glob_matches_what_trying_everything_matches(pattern: str, path: str) -> None:
    expected = pattern == path or slowly(pattern.split("/"), path.split("/"))

    assert matches(pattern, path) is expected


@given(st.lists(ODD, min_size=1, max_size=4).map("/".join))
def test_every_name_however_odd_names_itself(path: str) -> None:
    assert matches(path, path)


@given(ODD, ODD)
def test_a_star_never_crosses_a_slash(first: str, second: str) -> None:
    assert not matches("*", f"{first}/{second}")
    assert matches("**", f"{first}/{second}")
    assert matches("*/*", f"{first}/{second}")


@given(PATTERNS, PATHS)
def test_what_the_manifest_protects_is_never_allowed(pattern: str, path: str) -> None:
    scope = Scope(allowed=("**", path), protected=(pattern,))

    if matches(pattern, path):
        assert scope.standing(path, in_base=True) == "protected"
        assert scope.standing(path, in_base=False) == "protected"


@given(PATHS)
def test_an_empty_scope_allows_nothing(path: str) -> None:
    assert Scope(allowed=()).standing(path) != "allowed"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/github_sync.py", "src/github_sync.py"),
        ("src/*.py", "src/a.py"),
        ("src/**", "src/a/b/c.py"),
        ("src/", "src/a/b/c.py"),
        ("**/x.py", "x.py"),
        ("**/x.py", "a/b/x.py"),
        ("a/**/b", "a/b"),
        ("a/**/**/b", "a/x/y/b"),
        ("**/**", "a"),
        ("src/[ab].py", "src/a.py"),
        ("src/[!ab].py", "src/c.py"),
        ("src/[a-c]?.py", "src/bz.py"),
        ("app/[id]/page.tsx", "app/[id]/page.tsx"),
        ("app/[...slug]/page.tsx", "app/[...slug]/page.tsx"),
        ("what?.md", "what?.md"),
        ("a+b (1).txt", "a+b (1).txt"),
        ("[", "["),
        ("[z-a]", "-"),
        ("src/*", "src/new\nline"),
        ("src/*", "src/\udcff"),
        ("*.py", ".hidden.py"),
    ],
)
def test_patterns_that_match(pattern: str, path: str) -> None:
    assert matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/github_sync.py", "src/github_sync.py/evil.py"),
        ("src/github_sync.py", "src/github_sync.py\n"),
        ("src/github_sync.py", "Src/github_sync.py"),
        ("src/*.py", "src/a/b.py"),
        ("src/**", "src"),
        ("src/", "src"),
        ("src", "src/a.py"),
        ("src/**", "srcs/a.py"),
        ("a?b", "a/b"),
        ("a[/]b", "a/b"),
        ("a[!x]b", "a/b"),
        ("**/x.py", "a/xx.py"),
        ("src/[ab].py", "src/c.py"),
        ("src/[!ab].py", "src/a.py"),
        ("*.py", "a.pyc"),
    ],
)
def test_patterns_that_do_not_match(pattern: str, path: str) -> None:
    assert not matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/".join(["**", "a"] * 40) + "/b", "/".join(["a"] * 200)),
        ("*a" * 60 + "b", "a" * 4_000),
    ],
    ids=["many double stars", "many stars"],
)
def test_a_hostile_name_does_not_make_matching_slow(pattern: str, path: str) -> None:
    begun = time.process_time()

    assert not matches(pattern, path)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_x.py",
        "pkg/tests/data/x.json",
        "conftest.py",
        "pkg/conftest.py",
        "CONFTEST.PY",
        "pytest.ini",
        "pyproject.toml",
        "sitecustomize.py",
        "lib/usercustomize.py",
        "evil.pth",
        ".github/workflows/ci.yml",
        ".gitattributes",
        "src/.gitignore",
        "package.json",
        ".claude/settings.json",
        "AGENTS.md",
        "sub/.mcp.json",
        "src/test_sync.py",
        "web/app.test.ts",
    ],
)
def test_a_glob_does_not_open_what_is_protected_but_the_exact_name_does(path: str) -> None:
    assert Scope(allowed=("**",)).standing(path, in_base=False) == "protected"
    assert Scope(allowed=(path,)).standing(path, in_base=False) == "allowed"


def test_what_the_manifest_protects_stays_so_even_when_named_exactly() -> None:
    scope = Scope(allowed=("tests/test_x.py",), protected=("tests/**",))

    assert scope.standing("tests/test_x.py") == "protected"


def test_a_protected_folder_protects_what_is_below_it() -> None:
    scope = Scope(allowed=("**",), protected=("secret", "Docs/"))

    assert scope.standing("secret/deep/x") == "protected"
    assert scope.standing("docs/x") == "protected"
    assert scope.standing("secrets/x") == "allowed"


@pytest.mark.parametrize(
    "path",
    [
        "__pycache__/a.cpython-311.pyc",
        "src/__pycache__/a.pyc",
        "src/a.pyc",
        ".venv/lib/site.py",
        ".venv/lib/x.pth",
        "web/node_modules/left/index.js",
        "web/node_modules/left/package.json",
        "build/lib/a.py",
        ".pytest_cache/v/x",
        "src/.a.py.swp",
        "src/a.py~",
    ],
)
def test_leftovers_are_nobodys_concern_unless_the_base_has_them(path: str) -> None:
    scope = Scope(allowed=("src/**",))

    assert scope.standing(path, in_base=False) == "ephemeral"
    assert scope.standing(path, in_base=True) != "ephemeral"


@pytest.mark.parametrize(
    ("allowed", "path"),
    [
        ("dist/**", "dist/app.js"),
        ("dist/", "dist/app.js"),
        ("web/dist/app.js", "web/dist/app.js"),
        ("**/build/*.txt", "a/build/x.txt"),
    ],
)
def test_a_pattern_that_asks_for_build_output_gets_it(allowed: str, path: str) -> None:
    assert Scope(allowed=(allowed,)).standing(path, in_base=False) == "allowed"


def test_the_name_of_a_folder_means_all_that_is_below_it() -> None:
    scope = Scope(allowed=("src", "a.py")).below_folders({"src"}.__contains__)

    assert scope.standing("src/x.py") == "allowed"
    assert scope.standing("a.py/x") == "outside"


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../b",
        "a//b",
        "./a",
        "a\\b",
        ".git/config",
        ".GIT/x",
        "a\0",
    ],
)
def test_a_pattern_that_leaves_the_root_has_a_fault(pattern: str) -> None:
    fault = fault_of(pattern)

    assert fault is not None
    assert repr(pattern) in fault


@pytest.mark.parametrize("pattern", ["src/**", "src/", "a b", "[x]", ".github/x", "-"])
def test_ordinary_patterns_have_no_fault(pattern: str) -> None:
    assert fault_of(pattern) is None


def test_our_own_lists_have_no_fault_and_are_not_repeated() -> None:
    for patterns in (PROTECTED, EPHEMERAL):
        assert [one for one in patterns if fault_of(one)] == []
        assert len(set(patterns)) == len(patterns)


def test_only_a_name_without_wildcards_is_literal() -> None:
    assert is_literal("src/a.py")
    assert not any(map(is_literal, ("src/*.py", "src/?.py", "src/[a].py", "src/")))
