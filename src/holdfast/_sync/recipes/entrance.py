"""(Generated from _async/recipes/entrance.py by tools/unasync.py: do not edit.) What every lock has in common: `with`, decorating a function, trying at once (S26, S27)."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

from ..._concurrency import check_function, current_thread_key
from ...errors import LockError, NotAcquired
from ...model import Seconds
from ..lease import Lease
from ..tenure import Tenure
from .group_lease import LeaseGroup

L = TypeVar("L", Lease, LeaseGroup)
P = ParamSpec("P")
R = TypeVar("R")


class Entrance(ABC, Generic[L]):
    """A lock that can be entered by many tasks at once: each leaves what it entered."""

    def __init__(self, cancel_on_loss: bool) -> None:
        self._cancel_on_loss = cancel_on_loss
        self._open: dict[object, list[Tenure]] = {}  # by task or thread

    @abstractmethod
    def acquire(self, blocking: bool = True, timeout: Seconds | None = None) -> L | None:
        """Return a lease, or None when somebody else still has the lock after `timeout`."""

    @abstractmethod
    def locked(self) -> bool:
        """Say whether `try_acquire` would fail now."""

    @abstractmethod
    def _refusal(self) -> NotAcquired:
        """Return the error that says who has the lock."""

    def try_acquire(self) -> L | None:
        """Return a lease, or None if somebody has the lock; never waits for it."""
        return self.acquire(blocking=False)

    def __enter__(self) -> L:
        lease = self.acquire()
        if lease is None:
            raise self._refusal()
        self._enter(lease)
        return lease

    def _enter(self, lease: L) -> None:
        tenure = Tenure(lease, self._cancel_on_loss)
        self._open.setdefault(current_thread_key(), []).append(tenure)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leaving().leave(error)

    def _leaving(self) -> Tenure:
        """Take out the tenure that is being left: our own, or else the only one (S27)."""
        key: object = current_thread_key()
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

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: each call runs under the lock; `current_lease()` is its lease."""
        check_function(function)

        @functools.wraps(function)
        def locked(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return locked


class Named:
    """A decorator whose lock is named by the arguments of each call."""

    def __init__(self, make: Callable[[str], Entrance[Any]], name: Callable[..., str]) -> None:
        self._make = make
        self._name = name

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: each call runs under the lock its arguments name."""
        check_function(function)

        @functools.wraps(function)
        def locked(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._make(self._name(*args, **kwargs)):
                return function(*args, **kwargs)

        return locked
