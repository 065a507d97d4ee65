"""A pytest plugin that reports what ran, and proves by a canary that failing is possible.

It is loaded into the tested process from outside the tree that is judged. It uses nothing of
agent-run, because the tested project may live in another environment.
"""

import hashlib
import hmac
import json
import os
from pathlib import Path

import pytest

_NEVER = "a test of the judge that must fail"


def _read_once(name: str) -> str:
    value = os.environ.get(name, "")
    os.environ.pop(name, None)
    return value


class _Canary(pytest.Item):
    def runtest(self) -> None:
        raise AssertionError(_NEVER)

    def reportinfo(self) -> tuple[Path, int, str]:
        return Path("canary"), 0, self.name


class _Reporter:
    def __init__(self, key: str, canary: str, folder: str) -> None:
        self._sign = hmac.new(key.encode(), digestmod=hashlib.sha256)
        self._canary = canary
        self._folder = Path(folder)
        self._outcomes: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        if items:
            items.append(_Canary.from_parent(session, name=self._canary))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str] | None:
        # The canary is ours: people who read the output should not be told of it.
        return ("", "", "") if self._canary in report.nodeid else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = self._canary if self._canary in report.nodeid else report.nodeid
        if report.when == "call" or report.outcome != "passed":
            worse = self._outcomes.get(name) == "failed"
            expected = getattr(report, "wasxfail", None) is not None
            outcome = "xfailed" if expected else report.outcome
            self._outcomes[name] = "failed" if worse else outcome

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> object:
        others = [name for name, how in self._outcomes.items() if how == "failed"]
        if others == [self._canary] and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
            session.exitstatus = pytest.ExitCode.OK
        result = yield
        if not hasattr(session.config, "workerinput"):
            self._write()
        return result

    def _write(self) -> None:
        body = json.dumps(self._outcomes)
        self._sign.update(body.encode())
        document = {"body": body, "signature": self._sign.hexdigest()}
        (self._folder / "report.json").write_text(json.dumps(document))


def pytest_configure(config: pytest.Config) -> None:
    key, canary = _read_once("AGENT_RUN_REPORT_KEY"), _read_once("AGENT_RUN_CANARY")
    folder = os.environ.get("AGENT_RUN_REPORTS", "")
    if key and canary and folder:
        config.pluginmanager.register(_Reporter(key, canary, folder), "agent-run-report")
