"""Two pairs of hands, sync and async, so that the workload is written once.

What blocks in the sync pair never suspends: `run_blocking` drives such a coroutine without a loop.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import holdfast
from holdfast import aio

from ..clocks import boot_clock
from .assignment import NAMESPACE, Assignment

TICK = 0.02
LATE = 0.02  # a tick that comes later than this says that nobody ran meanwhile

Stalled = Callable[[float, float], None]
Client = Any  # holdfast.Client or aio.Client: the same names
Lease = Any


class Hands(Protocol):
    """What the workload does with a client."""

    async def acquire(self, lock: Any, timeout: float) -> Lease | None: ...
    async def release(self, lease: Lease) -> bool | None: ...
    async def sleep(self, seconds: float) -> None: ...
    async def close(self, client: Client) -> None: ...
    async def next_line(self) -> str: ...
    def connect(self, assignment: Assignment) -> Client: ...
    def leftovers(self) -> list[str]:
        """Return the threads or tasks of clients that are still there."""


def _options(assignment: Assignment) -> dict[str, Any]:
    return {
        "namespace": NAMESPACE,
        "ttl": assignment.ttl,
        "label": assignment.name,
        "connect_timeout": assignment.connect_timeout,
    }


class SyncHands:
    """Threads: each call blocks until it is done."""

    async def acquire(self, lock: holdfast.Lock, timeout: float) -> holdfast.Lease | None:
        """See Hands."""
        return lock.acquire(timeout=timeout)

    async def release(self, lease: holdfast.Lease) -> bool | None:
        """See Hands."""
        return lease.release()

    async def sleep(self, seconds: float) -> None:
        """See Hands."""
        time.sleep(seconds)  # noqa: ASYNC251

    async def close(self, client: holdfast.Client) -> None:
        """See Hands."""
        client.close()

    async def next_line(self) -> str:
        """See Hands."""
        return sys.stdin.readline()

    def connect(self, assignment: Assignment) -> holdfast.Client:
        """See Hands."""
        return holdfast.connect(assignment.url, **_options(assignment))

    def leftovers(self) -> list[str]:
        """See Hands."""
        names = [thread.name for thread in threading.enumerate()]
        return [f"thread {name}" for name in names if name.startswith("holdfast-")]

    def watch(self, stalled: Stalled) -> None:
        """Call `stalled` whenever this process did not run for a while."""

        def tick() -> None:
            last = boot_clock()
            while True:
                time.sleep(TICK)
                last = _compare(last, stalled)

        threading.Thread(target=tick, name="metronome", daemon=True).start()


class AsyncHands:
    """Tasks of one event loop."""

    def __init__(self) -> None:
        self._metronome: asyncio.Task[None] | None = None

    async def acquire(self, lock: aio.Lock, timeout: float) -> aio.Lease | None:
        """See Hands."""
        return await lock.acquire(timeout=timeout)

    async def release(self, lease: aio.Lease) -> bool | None:
        """See Hands."""
        return await lease.release()

    async def sleep(self, seconds: float) -> None:
        """See Hands."""
        await asyncio.sleep(seconds)

    async def close(self, client: aio.Client) -> None:
        """See Hands."""
        await client.close()

    async def next_line(self) -> str:
        """See Hands."""
        return await asyncio.to_thread(sys.stdin.readline)

    def connect(self, assignment: Assignment) -> aio.Client:
        """See Hands."""
        return aio.connect(assignment.url, **_options(assignment))

    def leftovers(self) -> list[str]:
        """See Hands."""
        ours = {asyncio.current_task(), self._metronome}
        return [f"task {task.get_name()}" for task in asyncio.all_tasks() if task not in ours]

    def watch(self, stalled: Stalled) -> None:
        """Call `stalled` whenever this loop did not turn for a while."""

        async def tick() -> None:
            last = boot_clock()
            while True:
                await asyncio.sleep(TICK)
                last = _compare(last, stalled)

        self._metronome = asyncio.create_task(tick())


def _compare(last: float, stalled: Stalled) -> float:
    now = boot_clock()
    if now - last > TICK + LATE:
        stalled(last, now)
    return now


def run_blocking(coroutine: Coroutine[Any, Any, None]) -> None:
    """Drive a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("a coroutine of blocking hands has suspended")
