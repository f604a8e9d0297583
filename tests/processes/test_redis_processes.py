"""Locks of several processes on one Redis server: exclusion, and what a crash or a pause costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.servers import RedisServer, need, redis_program
from tests.processes.workers import Start
from tests.unit.waiting import until


@pytest.fixture(scope="module")
def one_server() -> Iterator[RedisServer]:
    """One server for all tests here."""
    with RedisServer(need(redis_program)) as server:
        yield server


@pytest.fixture
def server(one_server: RedisServer) -> RedisServer:
    """It, empty."""
    one_server.command("FLUSHALL")
    return one_server


def listeners(server: RedisServer) -> int:
    """Return how many processes hear messages."""
    return len(server.command("CLIENT", "LIST", "TYPE", "pubsub").splitlines())


def end_of_lease(server: RedisServer) -> int:
    """Return the microsecond before which the one holder's time is not over."""
    with holdfast.connect(server.url) as client:
        client.ping()
        before = time.time_ns() // 1000  # the server's clock is that of this machine
        (holder,) = client.inspect("x").holders
    return before + int(holder.expires_in * 1e6)


def test_sync_async_and_command_line_exclude_each_other(
    start: Start, server: RedisServer, tmp_path: Path
) -> None:
    """A number in a file, read and written under the lock by all three, loses no step."""
    file = tmp_path / "number"
    file.write_text("0")
    step = (
        f"import pathlib; p = pathlib.Path({str(file)!r}); "
        "p.write_text(str(int(p.read_text()) + 1))"
    )
    workers = [start("add", colour, server.url, "n", file, 60) for colour in ("sync", "async") * 2]
    for _ in range(3):
        command = [sys.executable, "-m", "holdfast", "run", "--url", server.url, "n", "--"]
        subprocess.run([*command, sys.executable, "-c", step], check=True, timeout=60)
    for worker in workers:
        assert worker.process.wait(60) == 0
    assert int(file.read_text()) == 4 * 60 + 3


def test_killed_holder(start: Start, server: RedisServer) -> None:
    """After kill -9 the waiter gets in when the holder's time is over, not before and not much
    later, with a larger token."""
    holder = start("hold", server.url, "x", 1)
    token = int(holder.hear("held")[0])
    waiter = start("wait", server.url, "x", 1)
    waiter.hear("waiting")
    holder.kill()
    holder.process.wait()
    over = end_of_lease(server)
    got = int(waiter.hear("held")[0])  # a token is the server's time when it was given
    assert got > token
    assert 0 <= got - over < 500_000


def test_stopped_holder(start: Start, server: RedisServer) -> None:
    """SIGSTOP beyond the TTL: another has the lock, with a larger token, and the holder's lease is
    not held from its first look on."""
    holder = start("report", server.url, "x", 1)
    token = int(holder.hear("held")[0])
    waiter = start("wait", server.url, "x", 1)
    waiter.hear("waiting")
    os.kill(holder.process.pid, signal.SIGSTOP)
    assert int(waiter.hear("held")[0]) > token
    holder.tell()  # read when it wakes up, before anything else
    os.kill(holder.process.pid, signal.SIGCONT)
    held, reason = holder.hear("report")
    assert held == "False"
    assert reason in ("expired", "unreachable", "stolen")


def test_dead_waiters_are_skipped(start: Start, server: RedisServer) -> None:
    """Waiters killed at the head and in the middle of the queue cost nobody a TTL."""
    with holdfast.connect(server.url, ttl=30) as client:
        lease = client.lock("x").acquire()
        assert lease is not None
        workers = []
        for _ in range(5):
            workers.append(start("wait", server.url, "x", 30))
            workers[-1].hear("waiting")
        for number in (0, 2, 3):
            workers[number].kill()
        until(lambda: listeners(server) == 3)
        started = time.monotonic()
        lease.release()
        tokens = [lease.token, int(workers[1].hear("held")[0])]
        assert client.force_release("x") == 1
        tokens.append(int(workers[4].hear("held")[0]))
        assert time.monotonic() - started < 10
        assert tokens == sorted(set(tokens))


def test_waiter_killed_after_its_grant(start: Start, server: RedisServer) -> None:
    """One that dies as the new holder costs its own TTL, like any holder."""
    with holdfast.connect(server.url, ttl=30) as client:
        lease = client.lock("x").acquire()
        assert lease is not None
        waiter = start("wait", server.url, "x", 1)
        waiter.hear("waiting")
        lease.release()
        token = int(waiter.hear("held")[0])
        waiter.kill()
        waiter.process.wait()
        over = end_of_lease(server)
        second = client.lock("x").acquire(timeout=10)
        assert second is not None
        assert second.token > token
        assert 0 <= second.token - over < 500_000
        second.release()


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_fork(start: Start, server: RedisServer, colour: str) -> None:
    """A forked child works with connections of its own, or is refused where it cannot (async);
    it holds nothing, and the parent's lease and connections are as they were (S29)."""
    server.command("CONFIG", "RESETSTAT")
    worker = start("fork", colour, server.url, "x")
    worker.hear("held")
    child = worker.hear("child")
    if colour == "sync":
        assert child == ["True", "True", "False", "forked"]
    else:
        assert child == ["ClientClosed", "False", "forked"]
    assert worker.hear("parent") == ["True", "True"]
    assert worker.process.wait(30) == 0
    made = server.command("INFO", "stats").partition("total_connections_received:")[2]
    ours = {"sync": 4, "async": 2}[colour]  # a pair each for the parent and a sync child
    assert int(made.split()[0]) == ours + 1, "nobody had to connect again"
