"""The clock of S25: calls one function at the earliest instant it was asked for."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from ..clocks import Clock
from .loops import call_threadsafe, daemon, join_started, start_once

# A timer never sleeps longer than this at once: the clocks that timers run on stand still while the
# machine is suspended, and the one that leases run on does not.
LONGEST_NAP = 1.0
SHORTEST_NAP = 1e-6  # less may be nothing to the loop's clock, and then the alarm turns in circles
STOP_PATIENCE = 1.0  # `ring` does not block: a thread that was told to stop does so at once


class AsyncAlarm:
    """One timer of the loop, re-armed as needed; `ring` must not block."""

    __slots__ = ("_clock", "_handle", "_loop", "_next", "_ring", "_stopped")

    def __init__(self, clock: Clock, ring: Callable[[], None], name: str) -> None:
        self._clock = clock
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._next = math.inf
        self._handle: asyncio.TimerHandle | None = None
        self._stopped = False

    def set(self, at: float) -> None:
        """Ask for a ring at `at`, or earlier; earlier requests stay in force."""
        if at < self._next and not self._stopped:
            self._next = at
            self._arm()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        nap = min(max(SHORTEST_NAP, self._next - self._clock()), LONGEST_NAP)
        self._handle = self._loop.call_later(nap, self._fire)

    def _fire(self) -> None:
        self._handle = None
        if self._clock() < self._next < math.inf:
            self._arm()
        else:
            self._next = math.inf
            self._ring()

    def poke(self) -> None:
        """Ring as soon as possible; safe from any thread and from `__del__`."""
        call_threadsafe(self._loop, self._poked)

    def _poked(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._next = math.inf
        if not self._stopped:
            self._fire()

    def stop(self) -> None:
        """Ring no more."""
        self._stopped = True
        if self._handle is not None:
            self._handle.cancel()


class Alarm:
    """One thread that sleeps until the next instant; `ring` must not block."""

    __slots__ = ("_clock", "_name", "_next", "_pokes", "_ring", "_stopped", "_thread")

    def __init__(self, clock: Clock, ring: Callable[[], None], name: str) -> None:
        self._clock = clock
        self._ring = ring
        self._name = name
        self._next = math.inf
        self._pokes: SimpleQueue[bool] = SimpleQueue()  # True = ring, False = look again
        self._thread: threading.Thread | None = None
        self._stopped = False

    def set(self, at: float) -> None:
        """Ask for a ring at `at`, or earlier; earlier requests stay in force.

        The caller holds the mutex that `ring` takes, so the thread cannot be between two looks.
        """
        if at < self._next:
            if self._thread is None:
                self._thread = daemon(self._run, self._name)
            start_once(self._thread)
            self._next = at
            self._pokes.put(False)

    def _run(self) -> None:
        while not self._stopped:
            nap = min(self._next - self._clock(), LONGEST_NAP)
            if nap > 0:
                try:
                    if not self._pokes.get(timeout=nap):
                        continue
                except Empty:
                    continue
            if not self._stopped:
                self._next = math.inf
                self._ring()

    def poke(self) -> None:
        """Ring as soon as possible; safe from any thread and from `__del__`."""
        self._pokes.put(True)

    def stop(self) -> None:
        """Ring no more."""
        self._stopped = True
        self._pokes.put(False)
        join_started(self._thread, STOP_PATIENCE)
