"""Locks, events and bells in two colours: how code waits for other code."""

from __future__ import annotations

import asyncio
import math
import threading
from queue import Empty, SimpleQueue

from .loops import call_threadsafe, resolve, running_loop

Mutex = threading.Lock  # a real one in both colours, for what threads of both colours share


class AsyncThreadLock:
    """Nothing: code of one event loop that does not await cannot be interleaved."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


ThreadLock = threading.Lock


class AsyncEvent:
    """Like threading.Event without clear(): `set` from any thread, `await wait(timeout)`."""

    __slots__ = ("_mutex", "_set", "_waiters")

    def __init__(self) -> None:
        self._mutex = Mutex()
        self._set = False
        self._waiters: list[asyncio.Future[bool]] = []

    def is_set(self) -> bool:
        """Say whether it happened."""
        return self._set

    def set(self) -> None:
        """Let it have happened and wake all who wait, whatever loop they are on."""
        with self._mutex:
            self._set = True
            waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            loop = waiter.get_loop()
            if running_loop() is loop:
                resolve(waiter, True)
            else:
                call_threadsafe(loop, resolve, waiter, True)

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until it happened, or for `timeout` seconds; say which."""
        loop = asyncio.get_running_loop()
        with self._mutex:
            if self._set:
                return True
            waiter: asyncio.Future[bool] = loop.create_future()
            self._waiters.append(waiter)
        timer = None
        if timeout is not None and timeout < math.inf:
            timer = loop.call_later(max(0.0, timeout), resolve, waiter, False)
        try:
            return await waiter
        finally:
            if timer is not None:
                timer.cancel()
            with self._mutex:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)


class Event(threading.Event):
    """threading.Event that takes infinity for "no time-out"."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it happened, or for `timeout` seconds; say which."""
        if timeout is not None and timeout > threading.TIMEOUT_MAX:
            timeout = None
        return super().wait(timeout)


AsyncSignal = AsyncEvent


class Signal:
    """An event for one waiter, once: nothing but a lock, so it wakes faster than an Event."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Wake the waiter, or let its wait return at once."""
        try:
            self._lock.release()
        except RuntimeError:
            pass  # it was set before

    def wait(self, timeout: float) -> bool:
        """Wait until it happened, or for `timeout` seconds; say which."""
        if timeout >= threading.TIMEOUT_MAX:
            return self._lock.acquire()
        return self._lock.acquire(timeout=max(0.0, timeout))


class AsyncBell:
    """Wakes one waiting task; rings that nobody heard yet count once."""

    __slots__ = ("_loop", "_rung", "_waiter")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = False
        self._waiter: asyncio.Future[bool] | None = None

    def ring(self) -> None:
        """Wake the waiter, or let its next wait return at once."""
        self._rung = True
        if running_loop() is self._loop:
            self._wake()
        else:
            call_threadsafe(self._loop, self._wake)

    def _wake(self) -> None:
        if self._waiter is not None:
            resolve(self._waiter, True)

    async def wait(self, timeout: float) -> None:
        """Wait for a ring, or for `timeout` seconds."""
        if not self._rung:
            self._waiter = self._loop.create_future()
            timer = None
            if timeout < math.inf:
                timer = self._loop.call_later(max(0.0, timeout), resolve, self._waiter, False)
            try:
                await self._waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        self._rung = False


class Bell:
    """Wakes one waiting thread; rings that nobody heard yet count once."""

    __slots__ = ("_rings",)

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Wake the waiter, or let its next wait return at once."""
        self._rings.put(None)

    def wait(self, timeout: float) -> None:
        """Wait for a ring, or for `timeout` seconds."""
        try:
            self._rings.get(timeout=max(0.0, timeout) if timeout < math.inf else None)
            while True:
                self._rings.get_nowait()
        except Empty:
            pass
