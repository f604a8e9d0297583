"""Locks of several processes on one PostgreSQL server: exclusion, and what a crash or a pause
costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import holdfast
from holdfast.testing.servers import PostgresServer, need, postgres_program
from tests.processes.workers import Start
from tests.unit.waiting import until

QUICK = 20  # seconds: what is told, not timed, takes less


@pytest.fixture(scope="module")
def one_server() -> Iterator[PostgresServer]:
    """One server for all tests here."""
    with PostgresServer(need(postgres_program)) as server:
        yield server


@pytest.fixture
def server(one_server: PostgresServer) -> PostgresServer:
    """It, without any locks."""
    run(one_server, "DROP SCHEMA IF EXISTS holdfast CASCADE")
    return one_server


def run(server: PostgresServer, text: str) -> int:
    """Run a statement on the server; return how many rows it was about."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        return connection.execute(text.encode()).rowcount


def listeners(server: PostgresServer) -> int:
    """Return how many clients the server believes to be alive."""
    return run(
        server, "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'"
    )


def end_of_lease(server: PostgresServer) -> int:
    """Return the microsecond before which the one holder's time is not over."""
    with holdfast.connect(server.url) as client:
        client.ping()
        before = time.time_ns() // 1000  # the server's clock is that of this machine
        (holder,) = client.inspect("x").holders
    return before + int(holder.expires_in * 1e6)


def test_sync_async_and_command_line_exclude_each_other(
    start: Start, server: PostgresServer, tmp_path: Path
) -> None:
    """A number in a file, read and written under the lock by all three, loses no step."""
    file = tmp_path / "number"
    file.write_text("0")
    step = (
        f"import pathlib; p = pathlib.Path({str(file)!r}); "
        "p.write_text(str(int(p.read_text()) + 1))"
    )
    workers = [start("add", colour, server.url, "n", file, 40) for colour in ("sync", "async") * 2]
    for _ in range(2):
        command = [sys.executable, "-m", "holdfast", "run", "--url", server.url, "n", "--"]
        subprocess.run([*command, sys.executable, "-c", step], check=True, timeout=90)
    for worker in workers:
        assert worker.process.wait(90) == 0
    assert int(file.read_text()) == 4 * 40 + 2


def test_killed_holder(start: Start, server: PostgresServer) -> None:
    """After kill -9 the waiter gets in when the holder's time is over, not before and not much
    later, with a larger token."""
    holder = start("hold", server.url, "x", 2)
    token = int(holder.hear("held")[0])
    waiter = start("wait", server.url, "x", 2)
    waiter.hear("waiting")
    holder.kill()
    holder.process.wait()
    over = end_of_lease(server)
    got = int(waiter.hear("held")[0])  # a token is the server's time when it was given
    assert got > token
    assert 0 <= got - over < 5_000_000


def test_stopped_holder(start: Start, server: PostgresServer) -> None:
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


def test_dead_waiters_are_skipped(start: Start, server: PostgresServer) -> None:
    """Waiters killed at the head and in the middle of the queue cost nobody a TTL."""
    with holdfast.connect(server.url, ttl=60) as client:
        lease = client.lock("x").acquire()
        assert lease is not None
        workers = []
        for _ in range(5):
            workers.append(start("wait", server.url, "x", 60))
            workers[-1].hear("waiting")
        for number in (0, 2, 3):
            workers[number].kill()
        until(lambda: listeners(server) == 3)
        started = time.monotonic()
        lease.release()
        tokens = [lease.token, int(workers[1].hear("held")[0])]
        assert client.force_release("x") == 1
        tokens.append(int(workers[4].hear("held")[0]))
        assert time.monotonic() - started < QUICK
        assert tokens == sorted(set(tokens))


def test_stopped_waiter(start: Start, server: PostgresServer) -> None:
    """A waiter that is stopped still has its connection: it is let in, and costs its TTL, as a
    holder does; whoever is behind it follows then."""
    with holdfast.connect(server.url, ttl=3) as client:
        lease = client.lock("x").acquire()
        assert lease is not None
        stopped = start("wait", server.url, "x", 3)
        stopped.hear("waiting")
        behind = start("wait", server.url, "x", 3)
        behind.hear("waiting")
        os.kill(stopped.process.pid, signal.SIGSTOP)
        assert lease.release() is True
        assert int(behind.hear("held")[0]) > lease.token


def test_waiter_killed_after_its_grant(start: Start, server: PostgresServer) -> None:
    """One that dies as the new holder costs its own TTL, like any holder."""
    with holdfast.connect(server.url, ttl=60) as client:
        lease = client.lock("x").acquire()
        assert lease is not None
        waiter = start("wait", server.url, "x", 2)
        waiter.hear("waiting")
        lease.release()
        token = int(waiter.hear("held")[0])
        waiter.kill()
        waiter.process.wait()
        over = end_of_lease(server)
        second = client.lock("x").acquire(timeout=60)
        assert second is not None
        assert second.token > token
        assert 0 <= second.token - over < 5_000_000
        second.release()


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_fork(start: Start, server: PostgresServer, colour: str) -> None:
    """A forked child works with connections of its own, or is refused where it cannot (async);
    it holds nothing, and the parent's lease and connections are as they were (S29)."""
    run(server, "ALTER SYSTEM SET log_connections = on")
    run(server, "SELECT pg_reload_conf()")
    logged = server.log().count("connection authorized")
    worker = start("fork", colour, server.url, "x")
    worker.hear("held")
    child = worker.hear("child")
    if colour == "sync":
        assert child == ["True", "True", "False", "forked"]
    else:
        assert child == ["ClientClosed", "False", "forked"]
    assert worker.hear("parent") == ["True", "True"]
    assert worker.process.wait(30) == 0
    made = server.log().count("connection authorized") - logged
    # A pair each for the parent and a sync child, and one for the parent's renewals; some may have
    # been logged before the server had read its configuration again.
    assert made <= {"sync": 5, "async": 3}[colour], "nobody had to connect again"
    assert "unexpected EOF" not in server.log()
