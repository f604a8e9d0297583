"""A listener that raises or blocks harms no lock; without a listener nothing is paid."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

import holdfast
from holdfast import aio, events
from holdfast._concurrency import listening

PATIENCE = 30.0
PAIRS = 200

KINDS = [
    kind
    for kind in vars(events).values()
    if isinstance(kind, type) and issubclass(kind, events.Event)
]


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Something to block on, opened at the end."""
    opened = threading.Event()
    yield opened
    opened.set()


def until(met: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def reports(caplog: pytest.LogCaptureFixture, word: str) -> list[str]:
    """Return the lines about listeners that have this word in them."""
    lines = [record.getMessage() for record in caplog.records if record.name == "holdfast"]
    return [line for line in lines if "listener" in line and word in line]


class Blocking:
    """Blocks in its first event until the gate opens."""

    def __init__(self, gate: threading.Event) -> None:
        self._gate = gate
        self.heard: list[events.Event] = []

    def __call__(self, event: events.Event) -> None:
        self._gate.wait(PATIENCE)
        self.heard.append(event)


def failing(event: events.Event) -> None:
    """Raise whatever comes."""
    raise RuntimeError("a listener with a bug")


# --- Without a listener. ---


@pytest.fixture
def no_events(monkeypatch: pytest.MonkeyPatch) -> list[type[events.Event]]:
    """Note every event that is made."""
    made: list[type[events.Event]] = []

    of = events.Event.of.__func__  # type: ignore[attr-defined]

    def noted(kind: type[events.Event], details: dict[str, Any]) -> events.Event:
        made.append(kind)
        event: events.Event = of(kind, details)
        return event

    def constructed(self: events.Event, **details: Any) -> None:
        made.append(type(self))

    monkeypatch.setattr(events.Event, "of", classmethod(noted))
    for kind in KINDS:
        monkeypatch.setattr(kind, "__init__", constructed)
    return made


def live(client: holdfast.Client) -> None:
    """Do all that events are made of, but for what needs a failing engine."""
    lease = client.lock("x", ttl=2).acquire()
    assert lease is not None
    assert client.lock("x").try_acquire() is None
    assert client.lock("x").acquire(timeout=0.01) is None
    assert client.singleton("x")(lambda: None)() is holdfast.SKIPPED
    with pytest.raises(holdfast.LockMismatch):
        client.semaphore("x", 2).try_acquire()
    lease.extend()
    before = lease._deadline
    until(lambda: lease._deadline > before)  # renewed in the background
    client.force_release("x")
    assert lease.lost.wait(PATIENCE)
    with client.lock("y", max_hold=60):
        pass


def test_no_event_is_made_without_a_listener(no_events: list[type[events.Event]]) -> None:
    """Acquiring, missing, waiting, renewing, losing, breaking: no event object is allocated."""
    with holdfast.connect("memory://unheard") as client:
        live(client)
    assert no_events == []


def test_events_are_made_with_a_listener(no_events: list[type[events.Event]]) -> None:
    """The same with a listener makes them, so the test above would notice."""
    with holdfast.connect("memory://heard") as client:
        client.listen(lambda event: None)
        live(client)
    told = {kind.__name__ for kind in no_events}
    assert told >= {"Acquired", "Missed", "Waiting", "Skipped", "Renewed", "Forced", "Lost"}


async def all_live_too(client: aio.Client) -> None:
    lease = await client.lock("x", ttl=0.3).acquire()
    assert lease is not None
    assert await client.lock("x").acquire(timeout=0.01) is None
    await client.force_release("x")
    assert await lease.lost.wait(PATIENCE)
    async with client.lock("y"):
        pass


def test_no_event_is_made_without_a_listener_async(no_events: list[type[events.Event]]) -> None:
    """The same for tasks."""

    async def main() -> None:
        async with aio.connect("memory://unheard") as client:
            await all_live_too(client)

    asyncio.run(main())
    assert no_events == []


# --- Listeners that raise. ---


def test_raising_listener_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    """However often it raises, there is one line, with a traceback; others hear everything."""
    heard: list[events.Event] = []
    with holdfast.connect("memory://raising") as client:
        client.listen(failing)
        client.listen(heard.append)
        for _ in range(10):
            with client.lock("x"):
                pass
    assert len(heard) == 20
    assert len(reports(caplog, "raised")) == 1
    assert "a listener with a bug" in caplog.text


def test_raising_listener_is_reported_once_async(caplog: pytest.LogCaptureFixture) -> None:
    """The same for tasks, for a plain function and for one that awaits."""

    async def failing_too(event: events.Event) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("another bug")

    heard: list[events.Event] = []

    async def main() -> None:
        async with aio.connect("memory://raising") as client:
            for listener in (failing, failing_too, heard.append):
                client.listen(listener)
            for _ in range(10):
                async with client.lock("x"):
                    pass

    asyncio.run(main())
    assert len(heard) == 20
    assert len(reports(caplog, "raised")) == 2  # one each


# --- Listeners that block. ---


def test_blocking_listener_delays_nobody(
    gate: threading.Event, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks, losses, on_lost and other listeners go on; it is reported once; close ends."""
    monkeypatch.setattr(listening, "SLOW", 0.01)
    monkeypatch.setattr(listening, "STUCK", 0.05)
    heard: list[events.Event] = []
    lost = threading.Event()
    client = holdfast.connect("memory://blocking")
    client.listen(Blocking(gate))
    client.listen(heard.append)
    for _ in range(PAIRS):
        with client.lock("x", timeout=5):
            pass
    lease = client.lock("y", ttl=5, on_lost=lambda *_: lost.set()).acquire()
    assert lease is not None
    client.force_release("y")
    assert lost.wait(PATIENCE)
    until(lambda: len(heard) == 2 * PAIRS + 3)
    began = time.monotonic()
    client.close(timeout=PATIENCE)
    assert time.monotonic() - began < PATIENCE / 2
    until(lambda: bool(reports(caplog, "Blocking")))
    assert len(reports(caplog, "Blocking")) == 1


def test_blocking_listener_delays_no_task(
    gate: threading.Event, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain function that blocks does not block the loop, nor does one that awaits for ever."""
    monkeypatch.setattr(listening, "SLOW", 0.01)
    monkeypatch.setattr(listening, "STUCK", 0.05)
    heard: list[events.Event] = []

    async def for_ever(event: events.Event) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        client = aio.connect("memory://blocking")
        for listener in (Blocking(gate), for_ever, heard.append):
            client.listen(listener)
        for _ in range(PAIRS):
            async with client.lock("x", ttl=1, timeout=5) as lease:
                assert lease.held
        await asyncio.wait_for(client.close(timeout=PATIENCE), PATIENCE / 2)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert len(heard) == 2 * PAIRS
    for slow in ("Blocking", "for_ever"):
        until(lambda slow=slow: len(reports(caplog, slow)) == 1)  # type: ignore[misc]


def test_what_a_slow_listener_misses_is_bounded(
    gate: threading.Event, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listener that blocks keeps so many events in memory and no more."""
    monkeypatch.setattr(listening, "MOST", 50)
    slow = Blocking(gate)
    with holdfast.connect("memory://bounded") as client:
        client.listen(slow)
        for _ in range(PAIRS):
            with client.lock("x"):
                pass
        gate.set()
        until(lambda: len(slow.heard) >= 50)
    assert len(slow.heard) <= 52
    assert len(reports(caplog, "keep up")) == 1


def test_reporting_does_not_wait_for_the_log(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is the log itself that blocks, no lock waits for the line that says so."""
    monkeypatch.setattr(listening, "SLOW", 0.0)
    monkeypatch.setattr(listening, "STUCK", 0.05)

    class Stuck(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            gate.wait(PATIENCE)

    handler = Stuck()
    logger = logging.getLogger("holdfast")
    logger.addHandler(handler)
    try:
        with holdfast.connect("memory://log") as client:
            client.listen(lambda event: logger.error("an event"))
            began = time.monotonic()
            for _ in range(PAIRS):
                with client.lock("x"):
                    pass
            assert time.monotonic() - began < PATIENCE / 2
    finally:
        gate.set()
        logger.removeHandler(handler)


# --- What listeners can rely on. ---

WHO = ContextVar("WHO", default="nobody")


def test_listener_sees_the_context_of_the_caller() -> None:
    """What a thread or task has set in a ContextVar is there when its events are heard."""
    seen: set[tuple[str, str]] = set()

    def listener(event: events.Event) -> None:
        seen.add((event.name, WHO.get()))

    def work(name: str) -> None:
        WHO.set(name)
        with client.lock(name):
            pass

    with holdfast.connect("memory://context") as client:
        client.listen(listener)
        threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    async def task(client: aio.Client, name: str) -> None:
        WHO.set(name)
        async with client.lock(name):
            pass

    async def main() -> None:
        async with aio.connect("memory://context") as client:
            client.listen(listener)
            await asyncio.gather(*(task(client, name) for name in "def"))

    asyncio.run(main())
    assert seen == {(name, name) for name in "abcdef"}


def test_listener_may_close_the_client() -> None:
    """A listener that closes its own client does not wait for itself."""
    closed = threading.Event()
    client = holdfast.connect("memory://suicide")

    def close(event: events.Event) -> None:
        client.close(timeout=PATIENCE)
        closed.set()

    client.listen(close)
    lease = client.lock("x").acquire()
    assert closed.wait(PATIENCE / 2)
    assert lease is not None
    assert lease.lost_reason is holdfast.Reason.CLOSED


def test_nothing_is_missed_at_full_speed() -> None:
    """Locks taken as fast as this machine can are all heard, in order."""
    heard: list[events.Event] = []
    with holdfast.connect("memory://speed") as client:
        client.listen(heard.append)
        for _ in range(3000):
            with client.lock("x"):
                pass
    assert [type(event) for event in heard] == [events.Acquired, events.Released] * 3000


def test_events_say_when_they_happened() -> None:
    """`at` is Unix time, and does not fall."""
    heard: list[events.Event] = []
    before = time.time()
    with holdfast.connect("memory://when") as client:
        client.listen(heard.append)
        with client.lock("x"):
            pass
    times = [event.at for event in heard]
    assert times == sorted(times)
    assert before - 1 <= times[0] <= times[-1] <= time.time() + 1
