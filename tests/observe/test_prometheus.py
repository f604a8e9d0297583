"""Numbers for Prometheus are those of what happened, to the unit, in both colours."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

import holdfast
from holdfast import aio, events
from holdfast.fencing import Fence
from holdfast.guards import SQLGuard
from holdfast.observe import prometheus
from holdfast.observe.catalogue import METRICS
from holdfast.observe.window import Window
from holdfast.testing.servers import RedisServer, need, redis_program
from tests.observe.scraping import Scrape

PATIENCE = 30.0


@pytest.fixture
def scrape() -> Scrape:
    """An empty registry, to be asked by name."""
    return Scrape()


def until(met: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def test_attempts_by_result(scrape: Scrape) -> None:
    """Success, timeout, busy and error are counted apart; contention is the part in vain."""
    with holdfast.connect("memory://results") as client:
        client.listen(prometheus(registry=scrape.registry))
        with client.lock("x"):
            assert client.lock("x").try_acquire() is None
            assert client.lock("x").acquire(timeout=0.01) is None
            with pytest.raises(holdfast.LockMismatch):
                client.semaphore("x", 2).try_acquire()
    assert scrape.results() == {"success": 1, "timeout": 1, "busy": 1, "error": 1}
    assert scrape("contention_ratio") == 0.5
    assert scrape("acquisition_seconds_count") == 1
    assert scrape("hold_seconds_count") == 1
    assert scrape("ttl_seconds") == 30


def test_attempts_by_result_async(scrape: Scrape) -> None:
    """The same for tasks."""

    async def main() -> None:
        async with aio.connect("memory://results") as client:
            client.listen(prometheus(registry=scrape.registry))
            async with client.lock("x", ttl=10):
                assert await client.lock("x").try_acquire() is None
                assert await client.lock("x").acquire(timeout=0.01) is None

    asyncio.run(main())
    assert scrape.results() == {"success": 1, "timeout": 1, "busy": 1}
    assert scrape("ttl_seconds") == 10


def test_skipped_runs_are_no_contention(scrape: Scrape) -> None:
    """A singleton that another runs is counted as such, and as nothing else."""
    with holdfast.connect("memory://skipped") as client:
        client.listen(prometheus(registry=scrape.registry))
        with client.lock("x"):
            for _ in range(3):
                assert client.singleton("x")(lambda: None)() is holdfast.SKIPPED
    assert scrape("skipped_runs_total") == 3
    assert scrape.results() == {"success": 1}
    assert scrape("contention_ratio") == 0


def test_held_and_waiting_go_up_and_down(scrape: Scrape) -> None:
    """Gauges show who holds and who waits now, and are zero in the end."""
    with holdfast.connect("memory://levels") as client:
        client.listen(prometheus(registry=scrape.registry))
        lease = client.lock("x").acquire()
        assert lease is not None
        waiter = threading.Thread(target=lambda: client.lock("x").acquire(timeout=0.5))
        waiter.start()
        until(lambda: scrape("waiters") == 1)
        assert scrape("held") == 1
        waiter.join()
        until(lambda: scrape("waiters") == 0)
        lease.release()
        until(lambda: scrape("held") == 0)
        kept = client.lock("y").acquire()
        assert kept is not None
        until(lambda: scrape("held", "y") == 1)
    assert scrape("held", "y") == 0  # the client was closed
    assert scrape("losses_total", "y", reason="closed") == 1


def test_losses_by_reason(scrape: Scrape) -> None:
    """What expired counts as expiry before release; what was broken or closed does not."""
    with holdfast.connect("memory://losses") as client:
        client.listen(prometheus(registry=scrape.registry))
        gone = client.lock("x").acquire()
        assert gone is not None
        client.engine.release(gone._claim, 1.0)  # behind its back
        assert gone.release() is False
        forced = client.lock("x").acquire()
        client.force_release("x")
        until(lambda: scrape("losses_total", reason="forced") == 1)
        assert forced is not None
        assert forced.release() is False
        held = client.lock("x", max_hold=0.05).acquire()
        assert held is not None
        assert held.lost.wait(PATIENCE)
        assert held.release() is True
    assert scrape("losses_total", reason="expired") == 1
    assert scrape("losses_total", reason="max_hold") == 1
    assert scrape("expiry_before_release_total") == 1
    assert scrape("forced_releases_total") == 1
    assert scrape("hold_seconds_count") == 3  # each once, though some were lost and given back
    assert scrape("hold_ratio_count") == 1
    assert scrape("held") == 0


def test_hold_time_beside_max_hold(scrape: Scrape) -> None:
    """Only locks with max_hold have a hold ratio; one held for all of it is beyond 80 %."""
    with holdfast.connect("memory://max_hold") as client:
        client.listen(prometheus(registry=scrape.registry))
        with client.lock("x", max_hold=60):
            pass
        with client.lock("x"):
            pass
        lease = client.lock("x", max_hold=0.05).acquire()
        assert lease is not None
        assert lease.lost.wait(PATIENCE)
        lease.release()
    assert scrape("hold_ratio_count") == 2
    assert scrape("hold_ratio_bucket", le="0.8") == 1


def renewed(remaining: float, scheduled: bool = True) -> events.Renewed:
    """Return an event as the renewer tells it, of a lease of 10 seconds."""
    return events.Renewed(
        name="x",
        engine="e",
        namespace="n",
        token=1,
        owner="o",
        label="",
        ttl=10,
        remaining=remaining,
        scheduled=scheduled,
    )


def test_late_renewals(scrape: Scrape) -> None:
    """A renewal with less than a fifth of the TTL left is late, unless the holder asked for it."""
    meter = prometheus(registry=scrape.registry)
    for event in (renewed(6.6), renewed(2.1), renewed(1.9), renewed(1.0, scheduled=False)):
        meter(event)
    assert scrape("late_renewals_total") == 1
    assert scrape("renewal_ratio_count") == 3
    assert scrape("renewal_ratio_bucket", le="0.8") == 2


def test_renewal_near_max_hold_is_not_late(scrape: Scrape) -> None:
    """A renewal that comes in time is so, however little max_hold leaves; extending is not one."""
    with holdfast.connect("memory://renewals") as client:
        client.listen(prometheus(registry=scrape.registry))
        lease = client.lock("x", ttl=2, max_hold=1.0).acquire()
        assert lease is not None
        lease.extend(60)
        lease.extend(2)
        until(lambda: scrape("renewal_ratio_count") == 1)
        lease.release()
    assert scrape("late_renewals_total") == 0


def test_dropped_lease_is_a_leak(scrape: Scrape) -> None:
    """A lease that is collected unreleased is counted, and is held no longer."""
    with holdfast.connect("memory://leaks") as client:
        client.listen(prometheus(registry=scrape.registry))
        lease = client.lock("x").acquire()
        assert lease is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del lease
            gc.collect()
        until(lambda: scrape("leaks_total") == 1)
        until(lambda: scrape("held") == 0)


def test_listener_that_comes_late_shows_nothing_below_zero(scrape: Scrape) -> None:
    """A lease taken before anybody listened ends without a trace in the gauges."""
    with holdfast.connect("memory://late") as client:
        lease = client.lock("x").acquire()
        assert lease is not None
        client.listen(prometheus(registry=scrape.registry))
        lease.release()
    assert scrape("hold_seconds_count") == 1
    assert scrape("held") == 0


def test_guards_and_clients_share_a_listener(scrape: Scrape, tmp_path: Path) -> None:
    """The same object counts what a SQL guard lets in, keeps out and adopts."""
    meter = prometheus(registry=scrape.registry)
    connection = sqlite3.connect(tmp_path / "data.db")
    with holdfast.connect("memory://guards") as client:
        client.listen(meter)
        guard = SQLGuard(connection)
        guard.listen(meter)
        with client.lock("orders/1") as old:
            pass
        with client.lock("orders/1") as new, guard.transaction("orders/1", new):
            pass
        with pytest.raises(holdfast.StaleToken), guard.transaction("orders/1", old):
            pass
        with pytest.raises(holdfast.DomainMismatch):
            with guard.transaction("orders/1", Fence(new.token + 1, "elsewhere")):
                pass
        guard.adopt("orders/1", "elsewhere")
    connection.close()
    assert scrape("fencing_acceptances_total", "orders/*") == 1
    assert scrape("fencing_rejections_total", "orders/*") == 2
    assert scrape("fencing_adoptions_total", "orders/*") == 1
    assert scrape.results("orders/*") == {"success": 2}


def test_servers_are_seen(scrape: Scrape) -> None:
    """Latency, clock and errors of a Redis server are there, by node, without the password."""
    server = RedisServer(need(redis_program), options={"requirepass": "secret"})
    with server, holdfast.connect(f"redis://:secret@127.0.0.1:{server.port}") as client:
        client.listen(prometheus(registry=scrape.registry))
        with client.lock("x"):
            pass
        location = client.engine.location
        labels = {"engine": location, "node": location}

        def value(name: str) -> float | None:
            return scrape.registry.get_sample_value(f"distributed_lock_{name}", labels)

        until(lambda: value("engine_latency_seconds_count") == 1)
        offset = value("server_clock_offset_seconds")
        uncertainty = value("server_clock_uncertainty_seconds")
        assert offset is not None
        assert uncertainty is not None
        assert abs(offset) <= uncertainty + 0.01  # it is this machine's own clock
        assert value("engine_errors_total") == 0
        assert value("server_clock_steps_total") == 0
        server.pause()
        with pytest.raises(holdfast.EngineUnavailable):
            client.lock("x").acquire(timeout=0.2)
        server.resume()
        until(lambda: (value("engine_errors_total") or 0) >= 1)
    assert scrape.results() == {"success": 1, "error": 1}
    assert "secret" not in generate_latest(scrape.registry).decode()


def test_nodes_are_told_apart(scrape: Scrape) -> None:
    """Each node of a Redlock has its own latency and clock; one that is down has the errors."""
    with ExitStack() as stack:
        servers = [stack.enter_context(RedisServer(need(redis_program))) for _ in range(3)]
        client = stack.enter_context(
            holdfast.connect([server.url for server in servers], node_timeout=2.0)
        )
        client.listen(prometheus(registry=scrape.registry))
        with client.lock("x"):
            pass
        servers[2].kill()
        with client.lock("x"):
            pass
        engine = client.engine.location
    nodes = [server.url for server in servers]

    def value(name: str, node: str) -> float | None:
        labels = {"engine": engine, "node": node}
        return scrape.registry.get_sample_value(f"distributed_lock_{name}", labels)

    for node in nodes:
        assert (value("engine_latency_seconds_count", node) or 0) >= 1
        assert value("server_clock_offset_seconds", node) is not None
    failed = [bool(value("engine_errors_total", node)) for node in nodes]
    assert failed == [False, False, True]


def test_listeners_of_one_registry_share_its_series(scrape: Scrape) -> None:
    """Two listeners on one registry, even by different rules, add up."""
    with holdfast.connect("memory://two") as one, holdfast.connect("memory://two") as two:
        one.listen(prometheus(registry=scrape.registry))
        two.listen(prometheus(registry=scrape.registry, pattern=["*"]))
        for client in (one, two):
            with client.lock("x"):
                pass
    assert scrape.results("x") == {"success": 1}
    assert scrape.results("*") == {"success": 1}


def test_contention_is_that_of_five_minutes() -> None:
    """What is older is forgotten, at each look; a clock that is set back begins anew."""
    window = Window(1000.0)
    assert window.ratio(1000.0) == 0
    window.attempts, window.in_vain = 10, 5
    assert window.ratio(1060.0) == 0.5
    window.attempts = 20
    assert window.ratio(1200.0) == 0.25
    assert window.ratio(1361.0) == 0  # since 1060: ten more, none in vain
    window.attempts, window.in_vain = 30, 6
    assert window.ratio(1400.0) == 1 / 20
    assert window.ratio(5000.0) == 0
    assert window.ratio(100.0) == 0
    window.attempts, window.in_vain = 32, 7
    assert window.ratio(101.0) == 0.5


def test_every_metric_is_documented() -> None:
    """docs/observe.md names every metric there is."""
    page = Path(__file__).resolve().parents[2] / "docs" / "observe.md"
    text = page.read_text(encoding="utf-8")
    assert [metric.name for metric in METRICS if metric.name not in text] == []


def test_names_of_the_requirements() -> None:
    """What users were promised by name is there, with its labels and buckets."""
    found: dict[str, Any] = {metric.name: metric for metric in METRICS}
    assert found["distributed_lock_acquisitions_total"].labels == ("resource", "result")
    hold = found["distributed_lock_hold_seconds"]
    assert hold.labels == ("resource",)
    assert hold.buckets == (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60)
    assert found["distributed_lock_contention_ratio"].labels == ("resource",)
    assert found["distributed_lock_expiry_before_release_total"].labels == ("resource",)


def test_forked_child_holds_nothing_of_its_parents() -> None:
    """In a child the gauges are zero, though the parent holds; the child's own locks count."""
    script = """
import os, holdfast
from prometheus_client import CollectorRegistry
from holdfast.observe import prometheus

def value(name):
    return registry.get_sample_value(f"distributed_lock_{name}", {"resource": "x"})

registry = CollectorRegistry()
client = holdfast.connect("memory://")
client.listen(prometheus(registry=registry))
lease = client.lock("x").acquire()
while value("held") != 1:
    pass
child = os.fork()
if child == 0:
    with client.lock("x"):
        pass
    client.close()
    os._exit(0 if value("held") == 0 else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert value("held") == 1
lease.release()
client.close()
assert value("held") == 0
"""
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_many_processes_become_one(tmp_path: Path) -> None:
    """Workers forked from one that has the metrics already: counters and gauges add up."""
    script = """
import os, time, holdfast
from prometheus_client import REGISTRY, CollectorRegistry, multiprocess
from holdfast.observe import prometheus

WORKERS, PAIRS = 3, 20
client = holdfast.connect("memory://")
client.listen(prometheus())
with client.lock("orders/0", ttl=20):
    pass
children, pipes = [], []
for _ in range(WORKERS):
    ready, told = os.pipe()
    finish, finished = os.pipe()
    child = os.fork()
    if child == 0:
        for number in range(PAIRS):
            with client.lock(f"orders/{number}", ttl=10):
                pass
        kept = client.lock("orders/1").acquire()
        client.lock("orders/1").try_acquire()
        busy = {"resource": "orders/*", "result": "busy"}
        while REGISTRY.get_sample_value("distributed_lock_acquisitions_total", busy) != 1:
            time.sleep(0.001)
        os.write(told, b"!")
        os.read(finish, 1)
        os._exit(0)
    children.append(child)
    pipes.append((ready, finished))
for ready, _ in pipes:
    os.read(ready, 1)

def page():
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    value = registry.get_sample_value
    return lambda name, **labels: value(
        f"distributed_lock_{name}", {"resource": "orders/*", **labels}
    )

now = page()
assert now("acquisitions_total", result="success") == 1 + WORKERS * (PAIRS + 1)
assert now("acquisitions_total", result="busy") == WORKERS
assert now("hold_seconds_count") == 1 + WORKERS * PAIRS
assert now("held") == WORKERS, now("held")
assert now("ttl_seconds") == 10
assert 0.04 < now("contention_ratio") < 0.05, now("contention_ratio")
for child, (_, finished) in zip(children, pipes):
    os.write(finished, b"!")
    os.waitpid(child, 0)
    multiprocess.mark_process_dead(child)
then = page()
assert then("held") == 0, then("held")
assert then("acquisitions_total", result="success") == 1 + WORKERS * (PAIRS + 1)
client.close()
"""
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_registry_is_not_kept_alive() -> None:
    """What was made for a registry is gone with it."""
    from holdfast.observe import to_prometheus

    gc.collect()  # what other tests have left behind
    before = len(to_prometheus._made)
    registry = CollectorRegistry()
    prometheus(registry=registry)
    assert len(to_prometheus._made) == before + 1
    del registry
    gc.collect()
    assert len(to_prometheus._made) == before
