"""Who calls, and what may be done to it: tasks and threads, cancel scopes, decorated functions."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable


async def asleep(delay: float) -> None:
    """Pause this task."""
    await asyncio.sleep(delay)


def sleep(delay: float) -> None:
    """Pause this thread."""
    time.sleep(delay)


def current_task_key() -> object:
    """Return what stands for "the same task"; None outside of one."""
    return asyncio.current_task()


def current_thread_key() -> object:
    """Return what stands for "the same thread": not its number, which the next one may get."""
    return threading.current_thread()


class AsyncCancelScope:
    """Cancels the task that made it, until `leave`, and owns up to its own cancellation only."""

    __slots__ = ("_before", "_cancelled", "_left", "_loop", "_task")

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._before = task.cancelling()
        self._cancelled = False
        self._left = False

    def cancel(self) -> None:
        """Cancel the task from a loop callback, so never in the middle of its own step."""
        self._loop.call_soon(self._cancel_now)

    def _cancel_now(self) -> None:
        if not self._left and not self._cancelled:
            self._cancelled = True
            self._task.cancel()

    def leave(self, error: BaseException | None) -> bool:
        """Cancel no more; say whether `error` is a CancelledError that only we caused."""
        self._left = True
        if not self._cancelled:
            return False
        others = self._task.uncancel() > self._before
        return isinstance(error, asyncio.CancelledError) and not others


class CancelScope:
    """Nothing: a thread cannot be cancelled; it asks `ensure_held` or waits on `lost`."""

    __slots__ = ()

    def cancel(self) -> None:
        """Do nothing."""

    def leave(self, error: BaseException | None) -> bool:
        """Nobody was cancelled."""
        return False


def acheck_function(function: Callable[..., object]) -> None:
    """Refuse to decorate what this colour cannot run under a lock."""
    if not inspect.iscoroutinefunction(function):
        raise TypeError(
            f"{function!r} is not an async function: decorate it with a lock of holdfast.connect()."
        )


def check_function(function: Callable[..., object]) -> None:
    """Refuse to decorate what this colour cannot run under a lock."""
    if (
        not callable(function)
        or inspect.iscoroutinefunction(function)
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        raise TypeError(
            f"{function!r} is not a plain function: decorate async functions with a lock of "
            "holdfast.aio.connect(), and in generators use 'with lock'."
        )
