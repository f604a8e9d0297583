"""What tests of the store guard stand on: a store that compares and sets, in memory, and faults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast import guards
from holdfast._async.guards.store import AsyncStoreGuard
from holdfast.events import Event
from holdfast.model import Mode
from holdfast.testing import MemoryHarness
from holdfast.testing.collecting import collect
from holdfast.testing.running import AsyncRunner

DOMAIN = "tests"
NAME = "orders/1"


def fence(token: Any, domain: Any = DOMAIN, mode: Any = Mode.EXCLUSIVE) -> guards.Fence:
    """Return what a holder shows."""
    return guards.Fence(token, domain, mode)


def shared(token: int) -> guards.Fence:
    """Return what a reader shows."""
    return guards.Fence(token, DOMAIN, Mode.SHARED)


class AsyncShelf:
    """Data, fence and version of each name; what happens before and after a save can be set."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[Any, str | None, int]] = {}
        self.saves = 0
        self.before_save: list[Callable[[], Awaitable[object]]] = []  # each is used once
        self.after_save: list[Callable[[], bool]] = []

    async def load(self, resource: str) -> tuple[Any, str | None, int]:
        """See StoreGuard."""
        return self.rows.get(resource, (None, None, 0))

    async def save(self, resource: str, data: Any, fence: str, version: int) -> bool:
        """See StoreGuard."""
        if self.before_save:
            await self.before_save.pop(0)()
        if self.rows.get(resource, (None, None, 0))[2] != version:
            return False
        self.rows[resource] = (data, fence, version + 1)
        self.saves += 1
        return self.after_save.pop(0)() if self.after_save else True

    def data(self, resource: str = NAME) -> Any:
        """Return what is stored."""
        return self.rows[resource][0]


class AsyncStoreSuite:
    """A test with a guard on a shelf, and what the guard has told."""

    shelf: AsyncShelf
    guard: AsyncStoreGuard[Any]
    events: list[Event]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        collect(cls, MemoryHarness(), AsyncRunner.plain)

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test: this is what the runner calls."""
        self.shelf = AsyncShelf()
        self.guard = AsyncStoreGuard(self.shelf.load, self.shelf.save)
        self.events = []
        self.guard.listen(self.events.append)
        await test(self, **arguments)

    async def write(self, data: Any, token: int, **options: Any) -> None:
        """Write in a transaction of its own."""
        async with self.guard.transaction(NAME, fence(token, **options)) as item:
            item.write(data)

    async def touch(self, token: int) -> None:
        """Come with a token, and do nothing."""
        async with self.guard.transaction(NAME, fence(token)):
            pass

    def told(self) -> list[tuple[str, int, int]]:
        """Return what was told: which event, the token seen and the one offered."""
        return [
            (type(event).__name__, getattr(event, "seen", 0), getattr(event, "offered", 0))
            for event in self.events
        ]
