"""A pytest plugin that reports what ran, and proves by canaries that failing is possible.

It is loaded into the tested process from outside the tree that is judged, before anything of
that tree is imported. It uses nothing of agent-run, because the tested project may live in
another environment with an older Python.
"""

from __future__ import annotations

import builtins
import hashlib
import hmac
import json
import os
import sys
import unittest.case
from pathlib import Path
from typing import Any, Iterator  # noqa: UP035 - for older Pythons

import _pytest.assertion.rewrite
import _pytest.main
import _pytest.python
import _pytest.reports
import _pytest.runner
import _pytest.unittest
import pluggy
import pytest

_MUST_FAIL = "a test of the judge that must fail"
_PAPER = "observing.json"
_REPORT = "report.json"
_CALLED = ("raises", "approx", "fail", "skip", "xfail", "exit", "importorskip")
_dumps, _new = json.dumps, hmac.new


def _must_fail() -> None:
    raise AssertionError(_MUST_FAIL)


class _MustFailToo(unittest.TestCase):
    def runTest(self) -> None:  # noqa: N802 - unittest's own name
        self.assertEqual(_MUST_FAIL, "")  # noqa: PT009 - the way that unittest fails is tried


def _fail_as_unittest() -> None:
    _MustFailToo().runTest()


class _Canary(pytest.Item):
    def runtest(self) -> None:
        _must_fail()

    def reportinfo(self) -> tuple[Path, int, str]:
        return Path("canary"), 0, self.name


class _Reporter:
    """Sees every report last of all, and signs what it saw."""

    def __init__(self, key: str, canaries: list[str], folder: str) -> None:
        self._sign = _new(key.encode(), digestmod=hashlib.sha256)
        self._canaries = canaries
        self._file = Path(folder) / _REPORT
        self._tests: dict[str, str] = {}
        self._sung: dict[str, str] = {}
        self._tampered: list[str] = []
        self._parts: dict[str, object] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        # All plugins are in place by now, and nothing that is tested was imported.
        self._parts = dict(_parts())

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        if not items:
            return
        plain, of_unittest, own = self._canaries
        module = _module_of(items)
        if module is None:
            items.extend(_Canary.from_parent(session, name=name) for name in self._canaries)
            return
        # These go the way of every other test, so that who bends that way bends them too.
        items.append(pytest.Function.from_parent(module, name=plain, callobj=_must_fail))
        items.append(
            pytest.Function.from_parent(module, name=of_unittest, callobj=_fail_as_unittest)
        )
        items.append(_Canary.from_parent(session, name=own))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        # The canaries are ours: people who read the output should not be told of them.
        return ("", "", "") if self._canary_in(report.nodeid) else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        canary = self._canary_in(report.nodeid)
        if canary is None:
            self._note(report)
            return
        sung = getattr(report, "agent_run_sung", report.outcome)
        if sung == "failed" or report.when == "call":
            self._sung[canary] = sung
        # Nobody else shall count it, or stop because of it.
        report.agent_run_sung, report.outcome, report.longrepr = sung, "passed", None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self) -> None:
        os.environ["PYTEST_ADDOPTS"] = f"-p {__name__}"  # what workers shall load as well

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["agent_run_canaries"] = self._canaries

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", None) or {}
        self._tampered.extend(output.get("agent_run_tampered", ()))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        now = dict(_parts())
        changed = sorted(
            name for name, part in self._parts.items() if now.get(name) is not part
        )
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["agent_run_tampered"] = changed
            return
        self._tampered.extend(changed)
        self._write()

    def _canary_in(self, nodeid: str) -> str | None:
        name = nodeid.rpartition("::")[2]
        return name if name in self._canaries else None

    def _note(self, report: Any) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        expected = getattr(report, "wasxfail", None) is not None
        outcome = "xfailed" if expected else str(report.outcome)
        if self._tests.get(report.nodeid) != "failed":
            self._tests[report.nodeid] = outcome

    def _write(self) -> None:
        seen = {"tests": self._tests, "canaries": self._sung, "tampered": self._tampered}
        body = _dumps(seen)
        self._sign.update(body.encode())
        self._file.write_text(_dumps({"body": body, "signature": self._sign.hexdigest()}))


def _module_of(items: list[pytest.Item]) -> pytest.Module | None:
    for item in reversed(items):
        module = item.getparent(pytest.Module)
        if isinstance(item, pytest.Function) and module is not None:
            return module
    return None


def _parts() -> Iterator[tuple[str, object]]:
    """Yield what decides whether a test fails; a test that borrows a part gives it back."""
    places: tuple[Any, ...] = (
        *(_pytest.runner, _pytest.runner.CallInfo, _pytest.reports.TestReport),
        *(_pytest.python.Function, _pytest.unittest.TestCaseFunction, _pytest.main.Session),
        *(_pytest.assertion.rewrite, _pytest.assertion.rewrite.AssertionRewriter),
        *(pluggy.HookCaller, pluggy.PluginManager, unittest.case.TestCase),
        # The modules in which pluggy calls hooks have other names from version to version.
        *(module for name, module in sorted(sys.modules.items()) if name.startswith("pluggy.")),
    )
    for place in places:
        where = getattr(place, "__qualname__", place.__name__)
        for name, part in vars(place).items():
            inner = getattr(part, "__func__", part)
            if callable(inner):
                yield f"{where}.{name}", getattr(inner, "__code__", inner)
    for name in _CALLED:
        called = getattr(pytest, name, None)
        yield f"pytest.{name}", getattr(called, "__code__", called)
    yield "pytest_pyfunc_call", _pytest.python.pytest_pyfunc_call.__code__
    for name in ("AssertionError", "compile", "exec", "isinstance", "all", "any", "len"):
        yield name, getattr(builtins, name)


def _read_once() -> dict[str, Any] | None:
    """Return what the judge wants to know, and leave no trace of it for those who come."""
    for name in ("PYTEST_ADDOPTS", "PYTHONSAFEPATH"):
        os.environ.pop(name, None)
    here = os.path.dirname(__file__)  # noqa: PTH120
    others = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one != here]
    # What an environment imports from the project comes last, as it does by itself.
    imports = os.environ.pop("AGENT_RUN_IMPORTS", "")
    sys.path.extend(imports.split(os.pathsep) if imports else ())
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (*others, imports)))
    if Path(sys.argv[0]).name == "__main__.py" and getattr(sys.flags, "safe_path", False):
        # `python -m pytest` lets tests import from the current folder: so do we, from now on.
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    paper = Path(os.environ.get("AGENT_RUN_REPORTS", "")) / _PAPER
    try:
        text = paper.read_text()
        paper.unlink()
    except OSError:
        return None  # a worker of pytest-xdist, or pytest within a test
    known: dict[str, Any] = json.loads(text)
    return known


_known = [_read_once()]


def pytest_configure(config: pytest.Config) -> None:
    """Begin to watch."""
    known, _known[0] = _known[0], None
    folder = os.environ.get("AGENT_RUN_REPORTS", "")
    canaries = getattr(config, "workerinput", {}).get("agent_run_canaries")
    if known is not None:
        reporter = _Reporter(known["key"], known["canaries"], folder)
    elif canaries is not None:
        reporter = _Reporter("", canaries, folder)
    else:
        return
    config.pluginmanager.register(reporter, "agent-run-report")
