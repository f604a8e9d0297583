"""A contestant whose calls are awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import ClassVar, NamedTuple

from .contestant import PEER, TTL, Place


class AsyncHandle(NamedTuple):
    """Two calls, to be awaited; `acquire` raises if the lock cannot be had."""

    acquire: Callable[[], Awaitable[object]]
    release: Callable[[], Awaitable[object]]


class AsyncContestant:
    """Subclass it, say what it is, and make handles; what is opened is closed with the stack."""

    name: ClassVar[str] = ""
    role: ClassVar[str] = PEER
    package: ClassVar[str] = ""
    lacks: ClassVar[str] = ""
    waits: ClassVar[bool] = True

    def __init__(self, stack: AsyncExitStack, place: Place, ttl: float = TTL) -> None:
        self.stack, self.place, self.ttl = stack, place, ttl

    async def open(self) -> None:
        """Connect."""

    async def lock(self, key: str) -> AsyncHandle:
        """Return a lock of this name, for one task at a time."""
        raise NotImplementedError
