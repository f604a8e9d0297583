"""(Generated from _async/recipes/singleton.py by tools/unasync.py: do not edit.) The singleton job: run here, or say that another runs it (S31)."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ... import events
from ..._concurrency import check_function
from ...model import SKIPPED, Skip
from .lock import Lock

if TYPE_CHECKING:
    from ..runtime import Runtime

P = ParamSpec("P")
R = TypeVar("R")


class Singleton:
    """A decorator: of all processes that call the function at a time, one runs it."""

    def __init__(self, runtime: Runtime, lock: Lock) -> None:
        self._runtime = runtime
        self._lock = lock

    def __call__(self, function: Callable[P, R]) -> Callable[P, R | Skip]:
        """Decorate a function: it runs under the lock, or SKIPPED (falsy) is returned at once."""
        check_function(function)
        lock = self._lock

        @functools.wraps(function)
        def once(*args: P.args, **kwargs: P.kwargs) -> R | Skip:
            lease = lock.try_acquire()
            if lease is None:
                self._runtime.tell(events.Skipped, lock.name)
                return SKIPPED
            with lease:
                return function(*args, **kwargs)

        return once
