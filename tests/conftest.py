"""What all tests share: which of them the newest Python is spared."""

from __future__ import annotations

import pytest

FAULTS = ("test_redis_", "test_redlock_", "test_bench_redis")
ON_EVERY_PYTHON = ("test_redis_conformance", "test_redlock_settings", "test_redlock_tally")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count the fault tests on real servers as slow: they prove protocols, not Python versions."""
    for item in items:
        name = item.path.name
        if name.startswith(FAULTS) and not name.startswith(ON_EVERY_PYTHON):
            item.add_marker(pytest.mark.slow)
