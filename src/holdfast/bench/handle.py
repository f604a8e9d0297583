"""A lock in the hands of a bench: take it, give it back, each timed by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

PATIENCE = 20.0  # seconds that a contestant may wait for what somebody else has


class Handle(NamedTuple):
    """Two calls; `acquire` returns when the lock is held, and raises if it cannot be had."""

    acquire: Callable[[], object]
    release: Callable[[], object]


def pair_of(handle: Handle) -> Callable[[], None]:
    """Return a function that takes and gives back."""
    acquire, release = handle

    def pair() -> None:
        acquire()
        release()

    return pair


class NotHeld(Exception):
    """A contestant did not get a lock."""

    def __init__(self, what: str = "it did not get the lock in time") -> None:
        super().__init__(what)
