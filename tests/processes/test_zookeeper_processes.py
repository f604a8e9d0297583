"""Processes that share locks on one ZooKeeper server: exclusion, and what a crash costs."""

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
from holdfast.testing.servers import ZooKeeperServer, need, zookeeper_program
from tests.processes.workers import Start
from tests.unit.waiting import until

TTL = 2.0


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeperServer]:
    """One server for all tests here; each uses names of its own."""
    with ZooKeeperServer(need(zookeeper_program)) as running:
        yield running


def test_sync_async_and_command_line_exclude_each_other(
    start: Start, server: ZooKeeperServer, tmp_path: Path
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
        subprocess.run([*command, sys.executable, "-c", step], check=True, timeout=60)
    for worker in workers:
        assert worker.process.wait(60) == 0
    assert int(file.read_text()) == 4 * 40 + 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_holder_that_is_gone(
    start: Start, server: ZooKeeperServer, number: signal.Signals
) -> None:
    """One that is killed or stopped is replaced when its session is over, not before; its lease is
    not held from its first look on."""
    name = f"gone-{number}"
    holder = start("report", server.url, name, TTL)
    token = int(holder.hear("held")[0])
    waiter = start("wait", server.url, name, 30)
    waiter.hear("waiting")
    os.kill(holder.process.pid, number)
    gone = time.monotonic()
    got, at = waiter.hear("held")
    assert int(got) > token
    assert TTL / 2 < float(at) - gone < TTL + 5.0
    if number == signal.SIGSTOP:
        holder.tell()  # read when it wakes up, before anything else
        os.kill(holder.process.pid, signal.SIGCONT)
        held, reason = holder.hear("report")
        assert held == "False"
        assert reason in ("expired", "unreachable")


def test_waiters_that_are_gone(start: Start, server: ZooKeeperServer) -> None:
    """Waiters killed at the head and in the middle of the queue cost their sessions' time."""
    with holdfast.connect(server.url, ttl=30) as client:
        lease = client.lock("queue").acquire()
        assert lease is not None
        workers = []
        for _ in range(4):
            workers.append(start("wait", server.url, "queue", TTL))
            workers[-1].hear("waiting")
        for number in (0, 2):
            workers[number].kill()
        until(lambda: len(client.inspect("queue").waiters) == 2)
        started = time.monotonic()
        lease.release()
        tokens = [lease.token, int(workers[1].hear("held")[0])]
        assert client.force_release("queue") == 1
        tokens.append(int(workers[3].hear("held")[0]))
        assert time.monotonic() - started < 5
        assert tokens == sorted(set(tokens))


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_fork(start: Start, server: ZooKeeperServer, colour: str) -> None:
    """A forked child works with a session of its own, or is refused where it cannot (async);
    it holds nothing, and the parent's lease and connection are as they were (S29)."""
    before = server.figure("zk_connection_request_count")
    worker = start("fork", colour, server.url, f"fork-{colour}")
    worker.hear("held")
    child = worker.hear("child")
    if colour == "sync":
        assert child == ["True", "True", "False", "forked"]
    else:
        assert child == ["ClientClosed", "False", "forked"]
    assert worker.hear("parent") == ["True", "True"]
    assert worker.process.wait(30) == 0
    made = server.figure("zk_connection_request_count") - before
    assert made == {"sync": 2, "async": 1}[colour], "nobody had to connect again"


def test_nothing_is_left_behind(server: ZooKeeperServer) -> None:
    """A client that is closed takes its session with it, and with that whatever it still had."""
    sessions = server.figure("zk_global_sessions")
    with holdfast.connect(server.url, ttl=30) as client:
        lease = client.lock("left").acquire()
        assert lease is not None
        assert server.figure("zk_global_sessions") > sessions
    until(lambda: server.figure("zk_global_sessions") <= sessions)
