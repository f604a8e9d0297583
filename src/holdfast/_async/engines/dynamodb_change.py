"""Changing an item on the image that a refusal or a look has brought, until nobody is quicker.

Rule 1: what is decided is written on condition that the item is as its image; else it comes back
        as it is now, and is decided on again.
Rule 2 (S19): before a token is minted in an item without `c`, the shared floor is read, and the
        token is above that. An item that was not there at all is compared after it was made.
"""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_hex
from typing import Any, TypeVar

from ... import dice
from ..._concurrency import Mutex, asleep
from ...clocks import Clock, boot_clock
from ...dynamodb_draft import Draft, Sight
from ...dynamodb_link import Refused
from ...dynamodb_record import Item, Request, sighting_request
from ...errors import EngineUnavailable, LockError
from ...filesystems import boot_identity
from .dynamodb_table import AsyncTable

T = TypeVar("T")

CROWDED = 3  # updates that others were quicker with, after which we pause
PAUSE = 0.005  # seconds, times that many


class AsyncChanger:
    """Changes items of one table, and knows since when each holder has been silent (S13)."""

    def __init__(self, table: AsyncTable, clock: Clock) -> None:
        self.table = table
        self._clock = clock
        self._mutex = Mutex()
        self._host = boot_identity()
        self._sight = Sight(self._host)

    def draft(self, key: str, item: Item, sure: str = "") -> Draft:
        """Return an image that was received just now as a record; `sure` is not judged."""
        now = self._clock()
        with self._mutex:
            since = self._sight.note(key, item, now)
        return Draft(key, item, since, now, sure)

    def knows(self, key: str) -> bool:
        """Say whether this process has looked at a record before."""
        return self._sight.knows(key)

    async def leave_word(self, key: str, item: Item, end: float) -> None:
        """Leave in an item since when its holders are known, for who comes after this process."""
        if "v" not in item or self._clock is not boot_clock:
            return
        with self._mutex:
            word = self._sight.word(key)
        try:
            await self.write(sighting_request(key, item, self._host, word), self.left(end))
        except (Refused, LockError):
            pass  # it would have helped, no more

    async def change(
        self,
        key: str,
        item: Item,
        end: float,
        decide: Callable[[Draft], T],
        *,
        actor: str = "",
        sure: str = "",
        sent: Callable[[], None] = lambda: None,
    ) -> tuple[T, Draft, Item]:
        """Decide on an image and write that; return the decision, and what it was made on.

        `decide` may be asked again, each time on another image. `sent` is called before each write.
        """
        attempt = 0
        while True:
            floor = None
            if item and "c" not in item:
                floor = await self.table.floor(key, self.left(end))
            draft = self.draft(key, item, sure)
            draft.table.floor = max(draft.table.floor, floor or 0)
            decision = decide(draft)
            request = draft.request(new_version(), actor, floor)
            if request is None:
                return decision, draft, item
            sent()
            try:
                await self.write(request, self.left(end))
                return decision, draft, item
            except Refused as refused:
                item = refused.item
            if self._clock() >= end:
                raise self.overtaken(key)
            if attempt >= CROWDED:
                await asleep(dice.between(0, PAUSE * min(attempt, 20)))
            attempt += 1

    async def write(self, request: Request, timeout: float) -> Any:
        """Make one conditional update."""
        return await self.table.ask("update_item", request, timeout)

    def left(self, end: float) -> float:
        """Return how much time is left, and at least enough to fail in."""
        return max(0.001, end - self._clock())

    def overtaken(self, key: str) -> EngineUnavailable:
        """Return the error for an item that others kept changing."""
        where = self.table.location
        return EngineUnavailable(
            f"The item {key} on {where} changes faster than it can be read and written here; try "
            "again, or let fewer clients use one lock.",
            engine=where,
        )


def new_version() -> str:
    """Return a word that no item has had as its version."""
    return token_hex(8)
