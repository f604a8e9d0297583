"""The singleton job: run here, or say that another runs it (S31)."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ... import events
from ..._concurrency import acheck_function
from ...model import SKIPPED, Skip
from .lock import AsyncLock

if TYPE_CHECKING:
    from ..runtime import AsyncRuntime

P = ParamSpec("P")
R = TypeVar("R")


class AsyncSingleton:
    """A decorator: of all processes that call the function at a time, one runs it."""

    def __init__(self, runtime: AsyncRuntime, lock: AsyncLock) -> None:
        self._runtime = runtime
        self._lock = lock

    def __call__(self, function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R | Skip]]:
        """Decorate a function: it runs under the lock, or SKIPPED (falsy) is returned at once."""
        acheck_function(function)
        lock = self._lock

        @functools.wraps(function)
        async def once(*args: P.args, **kwargs: P.kwargs) -> R | Skip:
            lease = await lock.try_acquire()
            if lease is None:
                self._runtime.tell(events.Skipped, lock.name)
                return SKIPPED
            async with lease:
                return await function(*args, **kwargs)

        return once
