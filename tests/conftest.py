"""What all tests share: which of them the newest Python is spared, and which are run again."""

from __future__ import annotations

import os

import pytest

from tests import steadiness

ENGINES = ("redis", "redlock", "etcd", "zookeeper", "postgres", "dynamodb")
ON_SERVERS = (*(f"test_{name}_" for name in ENGINES), "test_bench_")
ON_EVERY_PYTHON = (
    *("test_redis_conformance", "test_redis_guard"),
    *("test_redlock_settings", "test_redlock_tally"),
)


def pytest_configure(config: pytest.Config) -> None:
    """Watch the machine, in each process that runs tests itself."""
    runs_tests = "PYTEST_XDIST_WORKER" in os.environ or not config.getoption("numprocesses", None)
    if runs_tests:
        config.pluginmanager.register(steadiness.Steadiness(), "steadiness")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was run again."""
    steadiness.summary(terminalreporter)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count most tests of engines on servers as slow: they prove protocols, not Python versions."""
    for item in items:
        name = item.path.name
        if name.startswith(ON_SERVERS) and not name.startswith(ON_EVERY_PYTHON):
            item.add_marker(pytest.mark.slow)
