"""OpenTelemetry: spans with their parents across tasks and threads, none left open, and numbers."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import holdfast
from holdfast import aio
from holdfast.guards import SQLGuard
from holdfast.observe import opentelemetry
from holdfast.observe.catalogue import METRICS
from holdfast.observe.patterns import Patterns
from holdfast.observe.to_opentelemetry import Spans, otel_name

PATIENCE = 30.0


class Traces:
    """Spans that have ended, in memory."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")
        self.listener = Spans(self.provider, Patterns())

    def named(self, name: str) -> list[ReadableSpan]:
        """Return the spans of this name."""
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        """Return the only span of this name."""
        (span,) = self.named(name)
        return span

    def close(self) -> None:
        """Stop."""
        self.provider.shutdown()


@pytest.fixture
def traces() -> Iterator[Traces]:
    """A tracer of its own, and a listener that uses it."""
    made = Traces()
    yield made
    made.close()


def identity(span: ReadableSpan) -> int:
    """Return the id of a span."""
    assert span.context is not None
    found: int = span.context.span_id
    return found


def parent(span: ReadableSpan) -> int | None:
    """Return the id of a span's parent."""
    return None if span.parent is None else span.parent.span_id


def run(work: Callable[[], object]) -> None:
    """Run something in a thread of its own, to its end."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_one_cycle(traces: Traces) -> None:
    """Acquire and hold are children of the caller's span, release of hold; times fit together."""
    with holdfast.connect("memory://cycle") as client:
        client.listen(traces.listener)
        with traces.tracer.start_as_current_span("request"):
            with client.lock("orders/99999", ttl=10) as lease:
                pass
    request = traces.one("request")
    acquire, hold = traces.one("acquire orders/*"), traces.one("hold orders/*")
    release = traces.one("release orders/*")
    assert parent(acquire) == parent(hold) == identity(request)
    assert parent(release) == identity(hold)
    assert acquire.attributes is not None
    assert acquire.attributes["lock.token"] == lease.token
    assert acquire.attributes["lock.pattern"] == "orders/*"
    assert acquire.attributes["lock.ttl"] == 10
    assert acquire.attributes["lock.result"] == "success"
    waited = acquire.attributes["lock.wait"]
    assert isinstance(waited, float)
    assert waited >= 0
    assert release.attributes is not None
    assert release.attributes["lock.outcome"] == "released"
    assert acquire.start_time <= acquire.end_time == hold.start_time  # type: ignore[operator]
    assert hold.start_time <= release.start_time <= release.end_time  # type: ignore[operator]
    assert release.end_time == hold.end_time
    assert "99999" not in str([acquire.attributes, hold.attributes, release.attributes])


def test_wait_in_vain(traces: Traces) -> None:
    """An attempt that ends without a lease is a span with its result; an error is marked."""
    with holdfast.connect("memory://vain") as client:
        client.listen(traces.listener)
        lease = client.lock("x").acquire()
        assert lease is not None
        assert client.lock("x").acquire(timeout=0.02) is None
        with pytest.raises(holdfast.LockMismatch):
            client.semaphore("x", 2).try_acquire()
        lease.release()
    good, late, wrong = traces.named("acquire x")
    assert good.status.status_code is StatusCode.UNSET
    assert late.attributes is not None
    assert late.attributes["lock.result"] == "timeout"
    assert late.end_time - late.start_time >= 0.02 * 1e9  # type: ignore[operator]
    assert wrong.status.status_code is StatusCode.ERROR


def test_threads(traces: Traces) -> None:
    """Each thread's spans hang on its own; who releases elsewhere ends the same hold."""
    with holdfast.connect("memory://threads") as client:
        client.listen(traces.listener)

        def work(name: str) -> None:
            with traces.tracer.start_as_current_span(f"thread {name}"), client.lock(name):
                pass

        workers = [threading.Thread(target=work, args=(name,)) for name in "abc"]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        with traces.tracer.start_as_current_span("here"):
            lease = client.lock("handed").acquire()
        assert lease is not None
        run(lease.release)
    for name in "abc":
        own = identity(traces.one(f"thread {name}"))
        assert parent(traces.one(f"acquire {name}")) == own
        assert parent(traces.one(f"hold {name}")) == own
    hold = traces.one("hold handed")
    assert parent(hold) == identity(traces.one("here"))
    assert parent(traces.one("release handed")) == identity(hold)


def test_tasks(traces: Traces) -> None:
    """The same for tasks, which share a thread."""

    async def main() -> None:
        async with aio.connect("memory://tasks") as client:
            client.listen(traces.listener)

            async def work(name: str) -> None:
                with traces.tracer.start_as_current_span(f"task {name}"):
                    await asyncio.sleep(0)
                    async with client.lock(name):
                        await asyncio.sleep(0)

            await asyncio.gather(*(work(name) for name in "abc"))
            with traces.tracer.start_as_current_span("here"):
                lease = await client.lock("handed").acquire()
            assert lease is not None
            await asyncio.create_task(lease.release())

    asyncio.run(main())
    for name in "abc":
        own = identity(traces.one(f"task {name}"))
        assert parent(traces.one(f"acquire {name}")) == own
        assert parent(traces.one(f"hold {name}")) == own
    hold = traces.one("hold handed")
    assert parent(hold) == identity(traces.one("here"))
    assert parent(traces.one("release handed")) == identity(hold)


def test_nothing_is_left_open(traces: Traces) -> None:
    """Leases that are closed, broken, dropped or expired end their spans, and say why."""
    client = holdfast.connect("memory://open")
    client.listen(traces.listener)
    kept = client.lock("closed").acquire()
    broken = client.lock("broken").acquire()
    over = client.lock("over", max_hold=0.01).acquire()
    gone = client.lock("gone").acquire()
    dropped: Any = client.lock("dropped").acquire()
    assert kept is not None
    assert broken is not None
    assert over is not None
    assert gone is not None
    assert dropped is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        dropped = None
        gc.collect()
    client.force_release("broken")
    assert broken.lost.wait(PATIENCE)
    assert over.lost.wait(PATIENCE)
    over.release()
    client.engine.release(gone._claim, 1.0)  # behind its back
    assert gone.release() is False
    client.close()
    assert traces.listener.open == 0
    reasons = {
        name: (traces.one(f"hold {name}").attributes or {}).get("lock.lost")
        for name in ("closed", "broken", "over", "gone", "dropped")
    }
    assert reasons == {
        "closed": "closed",
        "broken": "forced",
        "over": "max_hold",
        "gone": "expired",
        "dropped": None,
    }
    failed = {
        name: traces.one(f"hold {name}").status.status_code is StatusCode.ERROR for name in reasons
    }
    assert [name for name, bad in failed.items() if bad] == ["gone", "dropped"]


def test_cancelled_release_ends_the_span(traces: Traces) -> None:
    """A release that is cancelled half-way is still the end of the hold."""

    async def main() -> None:
        async with aio.connect("memory://cancelled") as client:
            client.listen(traces.listener)
            lease = await client.lock("x").acquire()
            assert lease is not None
            started = asyncio.Event()

            async def never(*args: Any) -> bool:
                started.set()
                await asyncio.Event().wait()
                return True

            engine: Any = client.engine
            real, engine.release = engine.release, never
            task = asyncio.create_task(lease.release())
            await started.wait()
            engine.release = real
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert traces.listener.open == 0
    release = traces.one("release x")
    assert (release.attributes or {})["lock.outcome"] == "unanswered"


def test_refused_write_is_noted_in_the_writers_span(traces: Traces) -> None:
    """The span of whoever was kept out says so, with both tokens."""
    connection = sqlite3.connect(":memory:")
    guard = SQLGuard(connection)
    guard.listen(traces.listener)
    with holdfast.connect("memory://refused") as client:
        with client.lock("x") as old:
            pass
        with client.lock("x") as new, guard.transaction("x", new):
            pass
        with traces.tracer.start_as_current_span("write"), pytest.raises(holdfast.StaleToken):
            with guard.transaction("x", old):
                pass
    connection.close()
    (note,) = traces.one("write").events
    assert note.attributes is not None
    assert note.attributes["lock.token"] == old.token
    assert note.attributes["lock.token_seen"] == new.token


def test_numbers() -> None:
    """The same metrics come out of OpenTelemetry, under the names that an exporter makes equal."""
    reader = InMemoryMetricReader()
    meters = MeterProvider([reader], shutdown_on_exit=False)
    tracers = TracerProvider(shutdown_on_exit=False)
    with holdfast.connect("memory://numbers") as client:
        client.listen(opentelemetry(meter_provider=meters, tracer_provider=tracers))
        with client.lock("orders/1", ttl=10):
            assert client.lock("orders/1").try_acquire() is None
    data = reader.get_metrics_data()
    assert data is not None
    found: dict[str, Any] = {
        metric.name: metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    meters.shutdown()
    tracers.shutdown()
    attempts = {
        point.attributes["result"]: point.value
        for point in found["distributed_lock.acquisitions"].data.data_points
    }
    assert {result: count for result, count in attempts.items() if count} == {
        "success": 1,
        "busy": 1,
    }
    (hold,) = found["distributed_lock.hold"].data.data_points
    assert hold.count == 1
    assert hold.attributes == {"resource": "orders/*"}
    assert hold.explicit_bounds == (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60)
    assert found["distributed_lock.hold"].unit == "s"
    (ratio,) = found["distributed_lock.contention_ratio"].data.data_points
    assert ratio.value == 0.5
    (held,) = found["distributed_lock.held"].data.data_points
    assert held.value == 0
    assert found.keys() <= {otel_name(metric)[0] for metric in METRICS}
