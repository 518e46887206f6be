"""A pytest plugin: where CI is set, a skipped test fails the run, because nobody reads what was skipped there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Registers the watcher if the environment variable CI says something other than no."""
    if os.environ.get("CI", "").lower() not in {"", "0", "false", "no"}:
        config.pluginmanager.register(NoSkips(), "dmslake-no-skips")


class NoSkips:
    """Collects what was skipped, names it at the end and turns a good exit status into 1."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A whole file or folder was skipped."""
        self._take(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test was skipped; one that was expected to fail (xfail) was run, so it does not count."""
        if not hasattr(report, "wasxfail"):
            self._take(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """The exit status is set after all others have had their say."""
        yield
        if self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Names each skipped test with its reason."""
        if self.skipped:
            terminalreporter.section("skipped, which CI does not allow", red=True, bold=True)
            for line in self.skipped:
                terminalreporter.line(line)

    def _take(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            self.skipped.append(f"{report.nodeid}: {reason}")
