"""Locks of several processes on one etcd server: exclusion, and what a crash or a pause costs."""

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
from holdfast.testing.servers import EtcdServer, etcd_program, need
from tests.processes.workers import Start
from tests.unit.waiting import until

SLOW = 15.0  # seconds that a loaded machine may take for what should be done in one or two


@pytest.fixture(scope="module")
def server() -> Iterator[EtcdServer]:
    """One server for all tests here; each has its own names."""
    with EtcdServer(need(etcd_program)) as one:
        yield one


def test_sync_async_and_command_line_exclude_each_other(
    start: Start, server: EtcdServer, tmp_path: Path
) -> None:
    """A number in a file, read and written under the lock by all three, loses no step."""
    file = tmp_path / "number"
    file.write_text("0")
    step = (
        f"import pathlib; p = pathlib.Path({str(file)!r}); "
        "p.write_text(str(int(p.read_text()) + 1))"
    )
    workers = [start("add", colour, server.url, "n", file, 30) for colour in ("sync", "async") * 2]
    for _ in range(2):
        command = [sys.executable, "-m", "holdfast", "run", "--url", server.url, "n", "--"]
        subprocess.run([*command, sys.executable, "-c", step], check=True, timeout=60)
    for worker in workers:
        assert worker.process.wait(60) == 0
    assert int(file.read_text()) == 4 * 30 + 2


def test_killed_holder(start: Start, server: EtcdServer) -> None:
    """After kill -9 the waiter gets in when the holder's lease is over, with a larger token."""
    holder = start("hold", server.url, "killed", 2)
    token = int(holder.hear("held")[0])
    waiter = start("wait", server.url, "killed", 2)
    waiter.hear("waiting")
    died = holder.kill()
    newer, at = waiter.hear("held")
    assert int(newer) > token
    # Its last keep-alive was up to a sixth of the TTL before; etcd looks twice a second.
    assert 1.5 < float(at) - died < SLOW


def test_stopped_holder(start: Start, server: EtcdServer) -> None:
    """SIGSTOP beyond the TTL: another has the lock, with a larger token, and the holder's lease is
    not held from its first look on."""
    holder = start("report", server.url, "stopped", 1)
    token = int(holder.hear("held")[0])
    waiter = start("wait", server.url, "stopped", 1)
    waiter.hear("waiting")
    os.kill(holder.process.pid, signal.SIGSTOP)
    assert int(waiter.hear("held")[0]) > token
    holder.tell()  # read when it wakes up, before anything else
    os.kill(holder.process.pid, signal.SIGCONT)
    held, reason = holder.hear("report")
    assert held == "False"
    assert reason in ("expired", "unreachable", "stolen")


def test_dead_waiters_are_passed_over(start: Start, server: EtcdServer) -> None:
    """Waiters killed at the head and in the middle of the queue lose their places by their TTL;
    who is behind them moves up, in order."""
    with holdfast.connect(server.url, ttl=30) as client:
        lease = client.lock("queue").acquire()
        assert lease is not None
        workers = []
        for _ in range(4):
            workers.append(start("wait", server.url, "queue", 2))
            workers[-1].hear("waiting")
        for number in (0, 2):
            workers[number].kill()
        until(lambda: len(client.inspect("queue").waiters) == 2)
        lease.release()
        tokens = [lease.token, int(workers[1].hear("held")[0])]
        assert client.force_release("queue") == 1
        tokens.append(int(workers[3].hear("held")[0]))
        assert tokens == sorted(set(tokens))
        workers[3].kill()


def test_stopped_waiter(start: Start, server: EtcdServer) -> None:
    """A waiter that was stopped for longer than its TTL has lost its place; it queues again."""
    with holdfast.connect(server.url, ttl=30) as client:
        lease = client.lock("asleep").acquire()
        assert lease is not None
        waiter = start("wait", server.url, "asleep", 1)
        waiter.hear("waiting")
        os.kill(waiter.process.pid, signal.SIGSTOP)
        until(lambda: not client.inspect("asleep").waiters)
        os.kill(waiter.process.pid, signal.SIGCONT)
        until(lambda: len(client.inspect("asleep").waiters) == 1)
        lease.release()
        assert int(waiter.hear("held")[0]) > lease.token


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_fork(start: Start, server: EtcdServer, colour: str) -> None:
    """A forked child works with a channel and a session of its own, or is refused where it cannot
    (async); it holds nothing, and the parent's lease is as it was (S29)."""
    worker = start("fork", colour, server.url, f"fork-{colour}")
    worker.hear("held")
    child = worker.hear("child")
    if colour == "sync":
        assert child == ["True", "True", "False", "forked"]
    else:
        assert child == ["ClientClosed", "False", "forked"]
    assert worker.hear("parent") == ["True", "True"]
    assert worker.process.wait(30) == 0


def test_child_that_ends_leaves_the_parent_its_lock(start: Start, server: EtcdServer) -> None:
    """The session is the parent's: it is kept alive by it, whatever becomes of a child."""
    worker = start("hold-fork", server.url, "family", 1)
    child = int(worker.hear("child")[0])
    token = int(worker.hear("held")[0])
    os.kill(child, signal.SIGKILL)
    with holdfast.connect(server.url) as client:
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            assert [one.token for one in client.inspect("family").holders] == [token]
            time.sleep(0.1)
