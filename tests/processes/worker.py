"""A process that takes a lock: run by the tests of this folder, talks in lines on its pipes.

worker.py hold URL NAME TTL          take the lock, say "held TOKEN", keep it until killed
worker.py hold-fork URL NAME TTL     the same, with a forked child that outlives it
worker.py report URL NAME TTL        the same, and on a line say whether it is "held" and why not
worker.py fork COLOUR URL NAME       hold, fork, say what "child" and "parent" can still do
worker.py wait URL NAME TTL          say "waiting", then "held TOKEN TIME" on getting it, keep it
worker.py cycle URL NAME SECONDS     acquire and release until then, say "count N STATEMENTS"
worker.py add COLOUR URL NAME FILE N add 1 to the number in FILE N times, each under the lock
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import holdfast
from holdfast import aio, events


def say(*words: object) -> None:
    print(*words, flush=True)


def hold(url: str, name: str, ttl: str, *, fork: bool = False) -> None:
    lease = holdfast.connect(url, ttl=float(ttl)).lock(name).acquire()
    assert lease is not None
    if fork:
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
        say("child", child)
    say("held", lease.token)
    time.sleep(600)


def report(url: str, name: str, ttl: str) -> None:
    lease = holdfast.connect(url, ttl=float(ttl)).lock(name).acquire()
    assert lease is not None
    say("held", lease.token)
    sys.stdin.readline()
    held = lease.held  # the very first thing it does after that
    say("report", held, lease.lost_reason)


def fork(colour: str, url: str, name: str) -> None:
    if colour == "async":
        asyncio.run(fork_tasks(url, name))
        return
    client = holdfast.connect(url, ttl=30)
    lease = client.lock(name).acquire()
    assert lease is not None
    say("held", lease.token)
    child = os.fork()
    if child == 0:
        own = client.lock(f"{name}-child").acquire(timeout=5)
        busy = client.lock(name).try_acquire() is None
        say("child", own is not None and own.held, busy, lease.held, lease.lost_reason)
        assert own is not None
        own.release()
        client.close()
        os._exit(0)
    os.waitpid(child, 0)
    lease.extend()
    say("parent", lease.held, lease.release())
    client.close()


async def fork_tasks(url: str, name: str) -> None:
    client = aio.connect(url, ttl=30)
    lease = await client.lock(name).acquire()
    assert lease is not None
    say("held", lease.token)
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(client.ping())  # a new loop: the parent's does not run here
        except aio.ClientClosed:
            say("child", "ClientClosed", lease.held, lease.lost_reason)
        os._exit(0)
    await asyncio.to_thread(os.waitpid, child, 0)
    await lease.extend()
    say("parent", lease.held, await lease.release())
    await client.close()


def wait(url: str, name: str, ttl: str) -> None:
    client = holdfast.connect(url, ttl=float(ttl))

    def tell(event: events.Event) -> None:
        if isinstance(event, events.Waiting):
            say("waiting")

    client.listen(tell)
    lease = client.lock(name).acquire()
    assert lease is not None
    say("held", lease.token, time.monotonic())
    time.sleep(600)


def cycle(url: str, name: str, seconds: str) -> None:
    client = holdfast.connect(url, ttl=30)
    lock = client.lock(name)
    client.ping()
    statements = 0
    database = client.engine._file._connection  # type: ignore[attr-defined]

    def count(text: str) -> None:
        nonlocal statements
        statements += 1

    say("ready")
    sys.stdin.readline()
    database.set_trace_callback(count)
    rounds = 0
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        with lock:
            rounds += 1
            time.sleep(0.002)
    say("count", rounds, statements)


def add(colour: str, url: str, name: str, file: str, times: str) -> None:
    path = Path(file)

    def step() -> None:
        value = int(path.read_text())
        time.sleep(0.0005)
        path.write_text(str(value + 1))

    if colour == "sync":
        with holdfast.connect(url) as client:
            for _ in range(int(times)):
                with client.lock(name):
                    step()
    else:

        async def main() -> None:
            async with aio.connect(url) as client:
                for _ in range(int(times)):
                    async with client.lock(name):
                        step()

        asyncio.run(main())


if __name__ == "__main__":
    order, *arguments = sys.argv[1:]
    if order == "hold-fork":
        hold(*arguments, fork=True)
    else:
        orders: dict[str, Callable[..., None]]
        orders = {"hold": hold, "wait": wait, "cycle": cycle, "add": add}
        orders |= {"report": report, "fork": fork}
        orders[order](*arguments)
    assert threading.active_count() < 6
