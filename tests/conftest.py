"""What all tests share: which of them the newest Python is spared."""

from __future__ import annotations

import pytest

ENGINES = ("redis", "redlock", "etcd", "zookeeper", "postgres", "dynamodb")
ON_SERVERS = (*(f"test_{name}_" for name in ENGINES), "test_bench_")
ON_EVERY_PYTHON = (
    *("test_redis_conformance", "test_redis_guard"),
    *("test_redlock_settings", "test_redlock_tally"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count most tests of engines on servers as slow: they prove protocols, not Python versions."""
    for item in items:
        name = item.path.name
        if name.startswith(ON_SERVERS) and not name.startswith(ON_EVERY_PYTHON):
            item.add_marker(pytest.mark.slow)
