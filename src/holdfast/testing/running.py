"""How a test runs in each colour, in pairs: the test itself, its helpers beside it, a busy body."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from .._concurrency import AsyncEvent, Event

T = TypeVar("T")

PATIENCE = 30.0  # a helper that takes longer than this hangs
LIMIT = 90.0  # so does a test
OURS = "holdfast-"  # how the tasks and threads of clients are called


class AsyncRunner:
    """Runs tests as coroutines, each on an event loop of its own."""

    @staticmethod
    def plain(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        """Return a function that any test runner can call, wrapped in `suite.conduct`."""

        @functools.wraps(test)
        def run(suite: Any, **arguments: object) -> None:
            async def limited() -> None:
                async with asyncio.timeout(LIMIT):
                    await suite.conduct(test, **arguments)

            asyncio.run(limited())

        return run

    @staticmethod
    def background() -> set[object]:
        """Return what runs for clients beside their callers: tasks."""
        return {task for task in asyncio.all_tasks() if task.get_name().startswith(OURS)}


class Runner:
    """Runs tests as they are; waits inside them are all limited."""

    @staticmethod
    def plain(test: Callable[..., None]) -> Callable[..., None]:
        """Return a function that any test runner can call, wrapped in `suite.conduct`."""

        @functools.wraps(test)
        def run(suite: Any, **arguments: object) -> None:
            suite.conduct(test, **arguments)

        return run

    @staticmethod
    def background() -> set[object]:
        """Return what runs for clients beside their callers: threads."""
        return {thread for thread in threading.enumerate() if thread.name.startswith(OURS)}


class AsyncSpawned(Generic[T]):
    """A call that runs beside the test, as a task."""

    def __init__(self, call: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> None:
        async def run() -> T:
            return await call(*args, **options)

        self._task = asyncio.get_running_loop().create_task(run())

    @property
    def done(self) -> bool:
        """Whether it has come to its end."""
        return self._task.done()

    async def result(self, timeout: float = PATIENCE) -> T:
        """Wait for its end, and return or raise what it came to."""
        await asyncio.wait([self._task], timeout=timeout)
        assert self._task.done(), f"{self._task!r} was still under way after {timeout:g} s"
        return self._task.result()


class Spawned(Generic[T]):
    """A call that runs beside the test, in a thread."""

    def __init__(self, call: Callable[..., T], *args: Any, **options: Any) -> None:
        self._returned: list[T] = []
        self._raised: list[BaseException] = []

        def run() -> None:
            try:
                self._returned.append(call(*args, **options))
            except BaseException as error:
                self._raised.append(error)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it has come to its end."""
        return not self._thread.is_alive()

    def result(self, timeout: float = PATIENCE) -> T:
        """Wait for its end, and return or raise what it came to."""
        self._thread.join(timeout)
        assert self.done, f"{self._thread!r} was still under way after {timeout:g} s"
        if self._raised:
            raise self._raised[0]
        return self._returned[0]


class _AsyncHeld(Protocol):
    @property
    def lost(self) -> AsyncEvent: ...


class _Held(Protocol):
    @property
    def lost(self) -> Event: ...


class AsyncBody:
    """The body of a `with` that is told of a loss in the way of its colour."""

    @staticmethod
    async def work_on(lease: _AsyncHeld) -> None:
        """Work until cancelled."""
        await asyncio.sleep(PATIENCE)


class Body:
    """The body of a `with` that is told of a loss in the way of its colour."""

    @staticmethod
    def work_on(lease: _Held) -> None:
        """Work until `lost` is set: a thread cannot be cancelled."""
        lease.lost.wait(PATIENCE)


def elapsed(since: float) -> float:
    """Return the seconds since an instant of time.monotonic()."""
    return time.monotonic() - since
