"""(Generated from _async/store_suite.py by tools/unasync.py: do not edit.) What tests of the store guard stand on: a store that compares and sets, in memory, and faults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast import guards
from holdfast._sync.guards.store import StoreGuard
from holdfast.events import Event
from holdfast.model import Mode
from holdfast.testing import MemoryHarness
from holdfast.testing.collecting import collect
from holdfast.testing.running import Runner

DOMAIN = "tests"
NAME = "orders/1"


def fence(token: Any, domain: Any = DOMAIN, mode: Any = Mode.EXCLUSIVE) -> guards.Fence:
    """Return what a holder shows."""
    return guards.Fence(token, domain, mode)


def shared(token: int) -> guards.Fence:
    """Return what a reader shows."""
    return guards.Fence(token, DOMAIN, Mode.SHARED)


class Shelf:
    """Data, fence and version of each name; what happens before and after a save can be set."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[Any, str | None, int]] = {}
        self.saves = 0
        self.before_save: list[Callable[[], object]] = []  # each is used once
        self.after_save: list[Callable[[], bool]] = []

    def load(self, resource: str) -> tuple[Any, str | None, int]:
        """See StoreGuard."""
        return self.rows.get(resource, (None, None, 0))

    def save(self, resource: str, data: Any, fence: str, version: int) -> bool:
        """See StoreGuard."""
        if self.before_save:
            self.before_save.pop(0)()
        if self.rows.get(resource, (None, None, 0))[2] != version:
            return False
        self.rows[resource] = (data, fence, version + 1)
        self.saves += 1
        return self.after_save.pop(0)() if self.after_save else True

    def data(self, resource: str = NAME) -> Any:
        """Return what is stored."""
        return self.rows[resource][0]


class StoreSuite:
    """A test with a guard on a shelf, and what the guard has told."""

    shelf: Shelf
    guard: StoreGuard[Any]
    events: list[Event]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        collect(cls, MemoryHarness(), Runner.plain)

    def conduct(self, test: Callable[..., None], **arguments: Any) -> None:
        """Run one test: this is what the runner calls."""
        self.shelf = Shelf()
        self.guard = StoreGuard(self.shelf.load, self.shelf.save)
        self.events = []
        self.guard.listen(self.events.append)
        test(self, **arguments)

    def write(self, data: Any, token: int, **options: Any) -> None:
        """Write in a transaction of its own."""
        with self.guard.transaction(NAME, fence(token, **options)) as item:
            item.write(data)

    def touch(self, token: int) -> None:
        """Come with a token, and do nothing."""
        with self.guard.transaction(NAME, fence(token)):
            pass

    def told(self) -> list[tuple[str, int, int]]:
        """Return what was told: which event, the token seen and the one offered."""
        return [
            (type(event).__name__, getattr(event, "seen", 0), getattr(event, "offered", 0))
            for event in self.events
        ]
