"""Locks of several processes on Redlock: exclusion, and what a crash or a pause costs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.redis_harness import RedlockHarness
from tests.processes.workers import Start


@pytest.fixture(scope="module")
def harness() -> Iterator[RedlockHarness]:
    """Five servers for all tests here."""
    found = RedlockHarness()
    found.start()
    yield found
    found.stop()


@pytest.fixture
def url(harness: RedlockHarness) -> str:
    """All of them, empty, as if they were new."""
    for server in harness.servers:
        server.command("FLUSHALL")
    return harness.url


def test_sync_and_async_exclude_each_other(start: Start, url: str, tmp_path: Path) -> None:
    """A number in a file, read and written under the lock by four processes, loses no step."""
    file = tmp_path / "number"
    file.write_text("0")
    workers = [start("add", colour, url, "n", file, 20) for colour in ("sync", "async") * 2]
    for worker in workers:
        assert worker.process.wait(60) == 0
    assert int(file.read_text()) == 4 * 20


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_holder_that_is_gone(start: Start, url: str, number: signal.Signals) -> None:
    """A holder that is killed or stopped is replaced when its time is over, not before, and its
    lease is not held from its first look on."""
    holder = start("report", url, "x", 1)
    token = int(holder.hear("held")[0])
    waiter = start("wait", url, "x", 1)
    waiter.hear("waiting")
    os.kill(holder.process.pid, number)
    gone = time.monotonic()
    got, at = waiter.hear("held")
    assert int(got) > token
    assert 0.5 < float(at) - gone < 5.0  # it was renewed at most a third of its TTL before
    if number == signal.SIGSTOP:
        holder.tell()
        os.kill(holder.process.pid, signal.SIGCONT)
        assert holder.hear("report")[0] == "False"


def test_waiters_that_are_gone(start: Start, url: str) -> None:
    """A waiter that was killed at the head of the queue costs nothing, one that was stopped a few
    seconds; when it goes on it waits again."""
    with holdfast.connect(url, ttl=30) as client:
        lease = client.lock("x").acquire()
        assert lease is not None
        workers = []
        for _ in range(3):
            workers.append(start("wait", url, "x", 30))
            workers[-1].hear("waiting")
        killed, stopped, alive = workers
        killed.kill()
        killed.process.wait()
        os.kill(stopped.process.pid, signal.SIGSTOP)
        started = time.monotonic()
        assert lease.release() is True
        first = int(alive.hear("held")[0])
        assert time.monotonic() - started < 15.0
        os.kill(stopped.process.pid, signal.SIGCONT)
        assert client.force_release("x") >= 1
        second = int(stopped.hear("held")[0])
        assert lease.token < first < second


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_fork(start: Start, harness: RedlockHarness, url: str, colour: str) -> None:
    """A forked child works with connections of its own, or is refused where it cannot (async);
    it holds nothing, and the parent's lease and connections are as they were (S29)."""
    for server in harness.servers:
        server.command("CONFIG", "RESETSTAT")
    worker = start("fork", colour, url, "x")
    worker.hear("held")
    child = worker.hear("child")
    if colour == "sync":
        assert child == ["True", "True", "False", "forked"]
    else:
        assert child == ["ClientClosed", "False", "forked"]
    assert worker.hear("parent") == ["True", "True"]
    assert worker.process.wait(30) == 0
    ours = {"sync": 4, "async": 2}[colour]  # a pair each for the parent and a sync child
    for server in harness.servers:
        made = server.command("INFO", "stats").partition("total_connections_received:")[2]
        assert int(made.split()[0]) <= ours + 1 + 2  # two more, if the machine was slow
