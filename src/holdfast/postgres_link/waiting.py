"""How threads and tasks wait: for a socket, for a connection that is free, for an address."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from .session import READ, Session, Steps
from .settings import Address, Parameters, looked_up, needs_lookup

T = TypeVar("T")


# --- Steps of a session. ---


def drive(session: Session, steps: Steps[T], timeout: float) -> T:
    """Let the steps go on until they are done, or for `timeout` seconds; they can be driven on."""
    end = time.monotonic() + timeout
    try:
        while True:
            session.awaits = want = session.awaits or next(steps)
            if not session.ready(want, end - time.monotonic()):
                raise TimeoutError(f"within {timeout:.3g} s")
            session.awaits = 0
    except StopIteration as done:
        result: T = done.value
        return result


async def adrive(session: Session, steps: Steps[T], timeout: float) -> T:
    """Let the steps go on until they are done, or for `timeout` seconds; they can be driven on."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout
    try:
        while True:
            session.awaits = want = session.awaits or next(steps)
            if not await _ready(loop, session.file, want, end):
                raise TimeoutError(f"within {timeout:.3g} s")
            session.awaits = 0
    except StopIteration as done:
        result: T = done.value
        return result


async def _ready(loop: asyncio.AbstractEventLoop, file: int, want: int, end: float) -> bool:
    waiter: asyncio.Future[bool] = loop.create_future()
    if want == READ:
        watch, leave = loop.add_reader, loop.remove_reader
    else:
        watch, leave = loop.add_writer, loop.remove_writer
    watch(file, _resolve, waiter, True)
    timer = loop.call_at(end, _resolve, waiter, False)
    try:
        return await waiter
    finally:
        timer.cancel()
        leave(file)


def _resolve(waiter: asyncio.Future[bool], value: bool) -> None:
    if not waiter.done():
        waiter.set_result(value)


# --- Turns: who may use one of a few connections. ---


class Turns:
    """So many at once; the others wait."""

    def __init__(self, count: int) -> None:
        # A semaphore is made of Python, and costs ten times as much as this.
        self._free: SimpleQueue[None] = SimpleQueue()
        for _ in range(count):
            self.give()

    def take(self, timeout: float) -> bool:
        """Take a turn, or return False when the time is over."""
        try:
            self._free.get(timeout=max(0.0, timeout))
        except Empty:
            return False
        return True

    def give(self) -> None:
        """Let the next one have it."""
        self._free.put(None)


class AsyncTurns:
    """So many at once; the others wait, first come, first served."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._queue: deque[asyncio.Future[bool]] = deque()

    async def take(self, timeout: float) -> bool:
        """Take a turn, or return False when the time is over."""
        if self._free > 0:
            self._free -= 1
            return True
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._queue.append(waiter)
        timer = loop.call_later(max(0.0, timeout), _resolve, waiter, False)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.result():
                self.give()  # it was ours already
            raise
        finally:
            timer.cancel()
            waiter.cancel()

    def give(self) -> None:
        """Let the next one have it."""
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.done():
                waiter.set_result(True)
                return
        self._free += 1


# --- Addresses. ---


def resolve(where: Address) -> Sequence[Parameters]:
    """Return how to connect to each address that a host has."""
    if not needs_lookup(where):
        return [where.parameters]
    return looked_up(where, socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM))


async def aresolve(where: Address) -> Sequence[Parameters]:
    """Return how to connect to each address that a host has; libpq would block while it asks."""
    if not needs_lookup(where):
        return [where.parameters]
    loop = asyncio.get_running_loop()
    found: Any = await loop.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)
    return looked_up(where, found)
