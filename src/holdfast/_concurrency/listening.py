"""Those who listen to events: each in a lane of its own, where it delays nobody but itself.

Rule 1: `hear` never waits and never raises, whatever the listener does. What an event is made of
        is handed over, and made into one on the other side: the caller's time is dearer.
Rule 2: few events are heard at once. When many come, they are heard in batches: to wake a thread
        for each would cost more than what it does.
Rule 3: a plain function is called in a thread of its own, in both colours: on a loop it could hold
        up renewals. One that awaits runs on the loop.
Rule 4: a listener sees the context (contextvars) of whoever caused the event.
Rule 5: no listener is in the middle of a call while the process forks: what it locks there, such
        as a counter, would stay locked in the child for ever.
Rule 6: one that raises, or does not come back, is reported once. MOST events wait for it, the
        rest it misses. Reporting may block too, so no caller does it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any

from ..events import Event
from .background import logger
from .loops import call_threadsafe, daemon, join_started, running_loop, start_once

MOST = 50_000  # events that wait for a slow listener
MANY = 8  # events in one nap that make another worth while
NAP = 0.02  # seconds
BATCH = 16  # events after which others get a turn
SLOW = 5.0  # seconds after which one that has not come back is reported
STUCK = 2.0  # seconds in one call after which the end of a client does not wait for it
STILL = 0.1  # seconds that a fork waits for listeners that are in the middle of a call

Function = Callable[[Any], object]
Kind = type[Event]
Details = dict[str, Any]


class _Complaints:
    """What is said of one listener: that it raised, and that it is slow, each once."""

    __slots__ = ("_function", "_raised", "_slow")

    def __init__(self, function: Function) -> None:
        self._function = function
        self._raised = self._slow = False

    @property
    def _name(self) -> str:
        return getattr(self._function, "__qualname__", "") or repr(self._function)

    def raised(self) -> None:
        """Report the exception that is being handled."""
        if not self._raised:
            self._raised = True
            logger.exception(
                "The listener %s raised; locks go on, and it is not reported again.", self._name
            )

    def is_slow(self, beside: bool = True) -> None:
        """Report that it does not come back: beside the caller, whom logging must not hold up."""
        if self._slow:
            return
        self._slow = True
        if not beside:
            self._say_slow()
            return
        try:
            daemon(self._say_slow, "holdfast-report").start()
        except RuntimeError:
            pass  # the interpreter is about to end

    def _say_slow(self) -> None:
        logger.warning(
            "The listener %s does not keep up: locks go on without it, %s events at most wait for "
            "it, and it misses the rest. It must not block.",
            self._name,
            f"{MOST:,}",
        )


class Listener:
    """A listener in a thread, which is started by its first event."""

    __slots__ = (
        *("__weakref__", "_begun", "_calls", "_complaints", "_function", "_loop"),
        *("_mutex", "_running", "_stopped", "_tasks", "_thread", "at_work"),
    )

    def __init__(self, function: Function, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._function = function
        self._loop = loop  # what is returned, if awaitable, is awaited there
        self._complaints = _Complaints(function)
        self._stopped = False
        self._tasks: set[asyncio.Future[object]] = set()
        self.begin_anew()
        _listeners.add(self)

    def begin_anew(self) -> None:
        """Have no thread, and nothing that waits for it: so it is in a forked child."""
        self._calls: SimpleQueue[tuple[Context, Kind, Details] | None] = SimpleQueue()
        self._mutex = threading.Lock()
        self.at_work = threading.Lock()  # held during a call
        self._thread: threading.Thread | None = None
        self._running = False
        self._begun: float | None = None  # when the call under way began

    def hear(self, kind: Kind, details: Details) -> None:
        """Hand an event over."""
        calls = self._calls
        if calls.qsize() and self._is_full():
            return
        calls.put((copy_context(), kind, details))
        if not self._running:
            self._start()

    def _is_full(self) -> bool:
        """Look whether it keeps up; say whether there is no room for more."""
        full = self._calls.qsize() >= MOST
        begun = self._begun
        if full or (begun is not None and time.monotonic() - begun > SLOW):
            self._complaints.is_slow()
        return full

    def _start(self) -> None:
        with self._mutex:
            if self._stopped:
                return
            if self._thread is None:
                self._thread = daemon(self._run, "holdfast-listener")
            try:
                start_once(self._thread)
            except RuntimeError:
                pass  # the interpreter is about to end

    def _run(self) -> None:
        self._running = True
        heard, since = 0, time.monotonic()
        while (call := self._calls.get()) is not None:
            self._begun = time.monotonic()
            with self.at_work:
                count = self._hear_some(call)
            self._begun = None
            call = None  # nothing of the caller's lives on while we wait
            heard += count
            if self._calls.qsize():
                time.sleep(0)
            elif time.monotonic() - since >= NAP:
                heard, since = 0, time.monotonic()
            elif heard >= MANY:
                time.sleep(NAP)
                heard, since = 0, time.monotonic()

    def _hear_some(self, call: tuple[Context, Kind, Details] | None) -> int:
        """Hear a batch at most, which begins with this; return how many it was."""
        count = 0
        while call is not None and not self._stopped:
            context, kind, details = call
            try:
                result = context.run(self._function, kind.of(details))
                if result is not None and self._loop is not None and inspect.isawaitable(result):
                    call_threadsafe(self._loop, self._await, result)
            except BaseException:
                self._complaints.raised()
            count += 1
            if count >= BATCH or not self._calls.qsize():
                return count
            call = self._calls.get()
        if call is None:
            self._calls.put(None)  # for the loop that called
        return count

    def _await(self, result: Awaitable[object]) -> None:
        task = asyncio.ensure_future(_awaited(result, self._complaints))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Tell it nothing more."""
        self._stopped = True
        self._calls.put(None)

    def drain(self, timeout: float) -> None:
        """Wait until it has heard all, at most `timeout` seconds, but not for one that blocks."""
        thread, end = self._end(), time.monotonic() + timeout
        while thread is not None and thread.is_alive():
            left = end - time.monotonic()
            join_started(thread, max(0.0, min(STUCK, left)))
            if thread.is_alive() and (left <= 0 or self._blocks()):
                self._leave()
                return

    async def adrain(self, timeout: float) -> None:
        """Do the same on a loop."""
        thread, end = self._end(), time.monotonic() + timeout
        while thread is not None and thread.is_alive():
            await asyncio.sleep(0.002)
            if time.monotonic() >= end or self._blocks():
                self._leave()
                break
        await _finish(self._tasks, max(0.0, min(STUCK, end - time.monotonic())))

    def _blocks(self) -> bool:
        """Say whether it has been in one call, or one batch of them, for too long."""
        begun = self._begun
        return begun is not None and time.monotonic() - begun > STUCK

    def _end(self) -> threading.Thread | None:
        self._calls.put(None)
        with self._mutex:
            thread = self._thread
        if thread is None or thread.ident is None or thread is threading.current_thread():
            return None  # nobody to wait for: the last one is a listener that closes its client
        return thread

    def _leave(self) -> None:
        """Leave a thread behind that does not come back (it is a daemon)."""
        self._stopped = True
        self._complaints.is_slow()


class AsyncListener:
    """A listener of an async client: in a thread, or on the loop if it awaits."""

    __slots__ = ("_function", "_lane")

    def __init__(self, function: Function) -> None:
        self._function = function
        self._lane: Listener | _LoopLane | None = None  # chosen on the loop

    def hear(self, kind: Kind, details: Details) -> None:
        """Hand an event over."""
        if self._lane is None:
            self._lane = self._choose()
        self._lane.hear(kind, details)

    def _choose(self) -> Listener | _LoopLane:
        loop = running_loop()
        # A loop on virtual time knows no other thread.
        if loop is None or not (_awaits(self._function) or hasattr(loop, "without_threads")):
            return Listener(self._function, loop)
        return _LoopLane(self._function, loop)

    def stop(self) -> None:
        """Tell it nothing more."""
        if self._lane is not None:
            self._lane.stop()

    async def drain(self, timeout: float) -> None:
        """Wait until it has heard all, at most `timeout` seconds, and as long as it gets on."""
        if self._lane is not None:
            await self._lane.adrain(timeout)


class _LoopLane:
    """Calls a listener on the loop, and runs what it returns, if awaitable, as tasks."""

    __slots__ = ("_complaints", "_function", "_loop", "_pending", "_stopped", "_tasks")

    def __init__(self, function: Function, loop: asyncio.AbstractEventLoop) -> None:
        self._function = function
        self._loop = loop
        self._complaints = _Complaints(function)
        self._pending = 0
        self._stopped = False
        self._tasks: set[asyncio.Future[object]] = set()

    def hear(self, kind: Kind, details: Details) -> None:
        """Hand an event over."""
        if self._pending + len(self._tasks) >= MOST:
            self._complaints.is_slow(beside=not hasattr(self._loop, "without_threads"))
            return
        self._pending += 1
        try:
            self._loop.call_soon(self._call, kind, details)
        except RuntimeError:
            self._pending -= 1  # the loop is closed

    def _call(self, kind: Kind, details: Details) -> None:
        self._pending -= 1
        if self._stopped:
            return
        try:
            result = self._function(kind.of(details))
        except Exception:
            self._complaints.raised()
            return
        if inspect.isawaitable(result):
            task = asyncio.ensure_future(_awaited(result, self._complaints))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Tell it nothing more."""
        self._stopped = True

    async def adrain(self, timeout: float) -> None:
        """Wait until it has heard all, at most `timeout` seconds."""
        end = self._loop.time() + timeout
        while self._loop.time() < end:
            if not self._pending:
                break
            await asyncio.sleep(0)
        left = max(0.0, min(STUCK, end - self._loop.time()))
        if not await _finish(self._tasks, left):
            self._complaints.is_slow(beside=not hasattr(self._loop, "without_threads"))


def _awaits(function: Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )


async def _awaited(result: Awaitable[object], complaints: _Complaints) -> object:
    try:
        return await result
    except Exception:
        complaints.raised()
        return None


async def _finish(tasks: set[asyncio.Future[object]], timeout: float) -> bool:
    """Wait for these; cancel what is left, and say whether nothing was."""
    mine = [task for task in tasks if task is not asyncio.current_task()]
    if not mine:
        return True
    _, left = await asyncio.wait(mine, timeout=timeout)
    for task in left:
        task.cancel()
    return not left


# --- Forks. ---

_listeners: weakref.WeakSet[Listener] = weakref.WeakSet()
_still: list[threading.Lock] = []  # held by whoever forks


def _before_fork() -> None:
    end = time.monotonic() + STILL
    for listener in list(_listeners):
        lock = listener.at_work
        if lock.acquire(timeout=max(0.0, end - time.monotonic())):
            _still.append(lock)


def _after_fork_in_parent() -> None:
    while _still:
        _still.pop().release()


def _after_fork_in_child() -> None:
    _still.clear()
    for listener in list(_listeners):
        listener.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
