"""`holdfast bench floor observe`: what being observed costs is measured beside not being so."""

from __future__ import annotations

from holdfast.bench.floor import FLOORS
from holdfast.bench.observe_cost import AIM, Sizes, pair
from holdfast.testing.servers import RedisServer, need, redis_program


def test_cost_is_measured_as_a_ratio() -> None:
    """One row for Prometheus, with its aim, and one for logs; the figures come from one run."""
    with RedisServer(need(redis_program)) as server:
        rows = pair(Sizes(rounds=3, pairs=20), [server])
    prometheus, logs = rows
    assert "Prometheus" in prometheus.what
    assert prometheus.aim == AIM == 1.15
    assert prometheus.value > 0
    assert logs.aim is None
    assert len(FLOORS["observe"](True)) == 1
