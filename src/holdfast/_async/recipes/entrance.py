"""What every lock has in common: `with`, decorating a function, trying at once (S26, S27)."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

from ..._concurrency import acheck_function, current_task_key
from ...errors import LockError, NotAcquired
from ...model import Seconds
from ..lease import AsyncLease
from ..tenure import AsyncTenure
from .group_lease import AsyncLeaseGroup

L = TypeVar("L", AsyncLease, AsyncLeaseGroup)
P = ParamSpec("P")
R = TypeVar("R")


class AsyncEntrance(ABC, Generic[L]):
    """A lock that can be entered by many tasks at once: each leaves what it entered."""

    def __init__(self, cancel_on_loss: bool) -> None:
        self._cancel_on_loss = cancel_on_loss
        self._open: dict[object, list[AsyncTenure]] = {}  # by task or thread

    @abstractmethod
    async def acquire(self, blocking: bool = True, timeout: Seconds | None = None) -> L | None:
        """Return a lease, or None when somebody else still has the lock after `timeout`."""

    @abstractmethod
    async def locked(self) -> bool:
        """Say whether `try_acquire` would fail now."""

    @abstractmethod
    async def _refusal(self) -> NotAcquired:
        """Return the error that says who has the lock."""

    async def try_acquire(self) -> L | None:
        """Return a lease, or None if somebody has the lock; never waits for it."""
        return await self.acquire(blocking=False)

    async def __aenter__(self) -> L:
        lease = await self.acquire()
        if lease is None:
            raise await self._refusal()
        self._enter(lease)
        return lease

    def _enter(self, lease: L) -> None:
        tenure = AsyncTenure(lease, self._cancel_on_loss)
        self._open.setdefault(current_task_key(), []).append(tenure)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._leaving().leave(error)

    def _leaving(self) -> AsyncTenure:
        """Take out the tenure that is being left: our own, or else the only one (S27)."""
        key: object = current_task_key()
        if key not in self._open:
            if len(self._open) != 1 or len(next(iter(self._open.values()))) != 1:
                raise LockError(
                    "This 'with lock' is being left by a task or thread that did not enter it, "
                    "and not exactly one is open; use 'with lock.acquire() as lease' where "
                    "leaving happens elsewhere."
                )
            key = next(iter(self._open))
        stack = self._open[key]
        tenure = stack.pop()
        if not stack:
            self._open.pop(key, None)
        return tenure

    def __call__(self, function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        """Decorate a function: each call runs under the lock; `current_lease()` is its lease."""
        acheck_function(function)

        @functools.wraps(function)
        async def locked(*args: P.args, **kwargs: P.kwargs) -> R:
            async with self:
                return await function(*args, **kwargs)

        return locked


class AsyncNamed:
    """A decorator whose lock is named by the arguments of each call."""

    def __init__(self, make: Callable[[str], AsyncEntrance[Any]], name: Callable[..., str]) -> None:
        self._make = make
        self._name = name

    def __call__(self, function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        """Decorate a function: each call runs under the lock its arguments name."""
        acheck_function(function)

        @functools.wraps(function)
        async def locked(*args: P.args, **kwargs: P.kwargs) -> R:
            async with self._make(self._name(*args, **kwargs)):
                return await function(*args, **kwargs)

        return locked
