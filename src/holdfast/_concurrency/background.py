"""What runs beside the caller: the worker, the user's callbacks, calls that outlive a cancel."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from .loops import daemon, join_started, start_once

logger = logging.getLogger("holdfast")

T = TypeVar("T")


class AsyncWorker:
    """A task of the client, started when first needed."""

    __slots__ = ("_loop", "_name", "_run", "_task")

    def __init__(self, run: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        self._run = run
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start it unless it runs."""
        if self._task is None:
            self._task = self._loop.create_task(self._run(), name=self._name)

    async def join(self, timeout: float) -> None:
        """Wait for its end; what still runs after `timeout` is cancelled."""
        task, self._task = self._task, None
        if task is not None:
            await asyncio.wait([task], timeout=timeout)
            if not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=1.0)


class Worker:
    """A daemon thread of the client, started when first needed."""

    __slots__ = ("_name", "_run", "_start", "_thread")

    def __init__(self, run: Callable[[], None], name: str) -> None:
        self._run = run
        self._name = name
        self._start = threading.Lock()  # two that need it first must not both start it
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start it unless it runs."""
        if self._thread is None or self._thread.ident is None:
            with self._start:
                if self._thread is None:
                    self._thread = daemon(self._run, self._name)
                start_once(self._thread)

    def join(self, timeout: float) -> None:
        """Wait for its end; what still runs after `timeout` is left behind (it is a daemon)."""
        join_started(self._thread, timeout)
        self._thread = None


class AsyncCallbacks:
    """Calls functions on the loop and runs what they return, if awaitable, as tasks."""

    __slots__ = ("_loop", "_pending", "_tasks")

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._pending = 0
        self._tasks: set[asyncio.Future[object]] = set()

    def submit(self, function: Callable[..., object], *args: object) -> None:
        """Call `function` soon; an exception is logged and harms nobody."""
        self._pending += 1
        self._loop.call_soon(self._call, function, args)

    def _call(self, function: Callable[..., object], args: tuple[object, ...]) -> None:
        self._pending -= 1
        try:
            result = function(*args)
        except Exception:
            _log_callback_error(function)
            return
        if inspect.isawaitable(result):
            task: asyncio.Future[object] = asyncio.ensure_future(_guarded(function, result))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def drain(self, timeout: float) -> None:
        """Wait until all that was submitted has been called, at most `timeout` seconds."""
        end = self._loop.time() + timeout
        while (self._pending or self._tasks) and self._loop.time() < end:
            await asyncio.sleep(0)
            tasks = [task for task in self._tasks if task is not asyncio.current_task()]
            if not tasks and not self._pending:
                return
            if tasks:
                await asyncio.wait(tasks, timeout=max(0.0, end - self._loop.time()))


async def _guarded(function: Callable[..., object], result: Awaitable[object]) -> object:
    try:
        return await result
    except Exception:
        _log_callback_error(function)
        return None


class Callbacks:
    """Calls functions one after another on a daemon thread."""

    __slots__ = ("_calls", "_name", "_start", "_thread")

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[tuple[Callable[..., object], tuple[object, ...]] | None]
        self._calls = SimpleQueue()
        self._start = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, function: Callable[..., object], *args: object) -> None:
        """Call `function` soon; an exception is logged and harms nobody."""
        self._calls.put((function, args))
        with self._start:
            if self._thread is None:
                self._thread = daemon(self._run, self._name)
            start_once(self._thread)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            function, args = call
            try:
                function(*args)
            except Exception:
                _log_callback_error(function)

    def drain(self, timeout: float) -> None:
        """Wait until all that was submitted has been called, at most `timeout` seconds."""
        if self._thread is not None:
            self._calls.put(None)
            join_started(self._thread, timeout)
            self._thread = None


def _log_callback_error(function: Callable[..., object]) -> None:
    name = getattr(function, "__qualname__", repr(function))
    logger.exception("The callback %s raised; it is ignored.", name)


class _Tasks(Protocol):
    def add(self, item: asyncio.Task[Any], /) -> None: ...
    def discard(self, item: asyncio.Task[Any], /) -> None: ...


async def ashield(tasks: _Tasks, call: Coroutine[Any, Any, T]) -> T:
    """Await `call` in a task of the client, so that it goes on when the caller is cancelled."""
    task = asyncio.get_running_loop().create_task(call)
    tasks.add(task)
    task.add_done_callback(_retrieve)
    task.add_done_callback(tasks.discard)
    return await asyncio.shield(task)


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Take note of the task's error, which nobody may be left to do."""
    if not task.cancelled():
        task.exception()


def shield(tasks: object, result: T) -> T:
    """Return the result: a blocking call has happened by now."""
    return result


async def ajoin(tasks: set[asyncio.Task[Any]], timeout: float) -> None:
    """Wait for shielded calls that are still under way, at most `timeout` seconds."""
    if tasks:
        await asyncio.wait(list(tasks), timeout=timeout)


def join(tasks: object, timeout: float) -> None:
    """Do nothing: a blocking call is never left under way."""
