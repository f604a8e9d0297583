"""Locks of several processes in one DynamoDB table: exclusion, and what a crash or pause costs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.dynamodb_harness import DynamoDBHarness
from tests.processes.workers import Start

TTL = 2


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """One server for all tests here."""
    harness = DynamoDBHarness()
    harness.start()
    yield harness.url
    harness.stop()


def test_sync_and_async_exclude_each_other(start: Start, url: str, tmp_path: Path) -> None:
    """A number in a file, read and written under the lock by processes of both, loses no step."""
    file = tmp_path / "number"
    file.write_text("0")
    workers = [start("add", colour, url, "n", file, 8) for colour in ("sync", "async")]
    for worker in workers:
        assert worker.process.wait(120) == 0
    assert int(file.read_text()) == 2 * 8


def test_killed_holder(start: Start, url: str) -> None:
    """After kill -9 the waiter gets in, not before a whole TTL has passed without a renewal."""
    holder = start("hold", url, "killed", TTL)
    token = int(holder.hear("held")[0])
    waiter = start("wait", url, "killed", TTL)
    waiter.hear("waiting")
    killed = holder.kill()
    holder.process.wait()
    new, at = waiter.hear("held")
    assert int(new) > token
    assert float(at) - killed > TTL * 2 / 3 - 0.1  # it has renewed a third of its TTL ago, at most


def test_stopped_holder(start: Start, url: str) -> None:
    """SIGSTOP beyond the TTL: another has the lock, with a larger token, and the holder's lease is
    not held from its first look on."""
    holder = start("report", url, "stopped", TTL)
    token = int(holder.hear("held")[0])
    waiter = start("wait", url, "stopped", TTL)
    waiter.hear("waiting")
    os.kill(holder.process.pid, signal.SIGSTOP)
    assert int(waiter.hear("held")[0]) > token
    holder.tell()  # read when it wakes up, before anything else
    os.kill(holder.process.pid, signal.SIGCONT)
    held, reason = holder.hear("report")
    assert held == "False"
    assert reason in ("expired", "unreachable", "stolen")


def test_dead_waiters_are_passed_over(start: Start, url: str) -> None:
    """A waiter killed at the head, and one in the middle, cost nobody the TTL they asked for."""
    with holdfast.connect(url, ttl=300) as client:
        lease = client.lock("queue").acquire()
        assert lease is not None
        workers = []
        for _ in range(4):
            workers.append(start("wait", url, "queue", 300))
            workers[-1].hear("waiting")
        for number in (0, 2):
            workers[number].kill()
            workers[number].process.wait()
        started = time.monotonic()
        lease.release()
        tokens = [lease.token, int(workers[1].hear("held")[0])]
        assert client.force_release("queue") == 1
        tokens.append(int(workers[3].hear("held")[0]))
        assert time.monotonic() - started < 60
        assert tokens == sorted(set(tokens))


def test_stopped_waiter_at_the_head(start: Start, url: str) -> None:
    """One that sleeps when its turn comes loses it after a moment, not after its TTL, and gets the
    lock later: it is never held by two."""
    with holdfast.connect(url, ttl=300) as client:
        lease = client.lock("sleeper").acquire()
        assert lease is not None
        sleeper = start("wait", url, "sleeper", 300)
        sleeper.hear("waiting")
        os.kill(sleeper.process.pid, signal.SIGSTOP)
        other = start("wait", url, "sleeper", 300)
        other.hear("waiting")
        lease.release()
        token = int(other.hear("held")[0])
        os.kill(sleeper.process.pid, signal.SIGCONT)
        assert client.lock("sleeper").try_acquire() is None
        assert client.force_release("sleeper", token) == 1
        assert int(sleeper.hear("held")[0]) > token


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_fork(start: Start, url: str, colour: str) -> None:
    """A forked child works with connections of its own, or is refused where it cannot (async);
    it holds nothing, and the parent's lease is as it was (S29)."""
    worker = start("fork", colour, url, f"fork-{colour}")
    worker.hear("held")
    child = worker.hear("child")
    if colour == "sync":
        assert child == ["True", "True", "False", "forked"]
    else:
        assert child == ["ClientClosed", "False", "forked"]
    assert worker.hear("parent") == ["True", "True"]
    assert worker.process.wait(60) == 0
