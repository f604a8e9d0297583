"""The table of dynamodb://: looked at or made before its first use, and kept small.

Rule 1: a table with replicas in other regions is refused unless it is strongly consistent: the
        others would let two in at once, and the last writer would win.
Rule 2 (S19): idle items are forgotten a day after their last token. First the shared floor of the
        namespace is raised to their tokens, then each is deleted, if it is still as it was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dice
from ..._concurrency import asleep
from ...clocks import Clock, wall_micros
from ...dynamodb_draft import BURIED
from ...dynamodb_link import AsyncLink, NoTable, Refused, Settings
from ...dynamodb_record import (
    FLOOR,
    NAME,
    Item,
    Request,
    check_table,
    cursor_request,
    delete_request,
    floor_key,
    in_use,
    list_request,
    look_request,
    number,
    raise_floor_request,
    table_request,
)
from ...errors import EngineUnavailable, LockError
from ...rules import FLOOR_LIFETIME

POLL = 0.1  # seconds between looks at a table that is being made
FORGET_CHANCE = 1 / 1000  # of a release to look for idle items: clients may live shortly
FORGET_PAGE = 1000  # items looked at each time

_sound: set[tuple[object, ...]] = set()  # tables that were found to be so by any client of ours


class AsyncTable:
    """One table, as an engine sees it."""

    def __init__(self, link: AsyncLink, settings: Settings, clock: Clock, create: bool) -> None:
        self.location = settings.location
        self._link = link
        self._settings = settings
        self._clock = clock
        self._create = create
        self._identity = (settings.region, settings.endpoint, settings.table)
        self.forget_chance = FORGET_CHANCE

    async def ask(self, method: str, request: Request, timeout: float) -> Any:
        """Make one request to the table, which is there; `Refused` if its condition fails."""
        if self._identity not in _sound:
            timeout = await self._prepare(timeout)
        try:
            return await self._link.ask(method, self._whole(request), timeout)
        except NoTable as error:
            raise self._missing() from error

    async def ask_all(
        self, method: str, requests: Sequence[Request], timeout: float
    ) -> list[Any | Exception]:
        """Make several requests; return answers, or what they failed with, in order."""
        if self._identity not in _sound:
            timeout = await self._prepare(timeout)
        whole = [self._whole(request) for request in requests]
        answers = await self._link.ask_all(method, whole, timeout)
        return [self._missing() if isinstance(one, NoTable) else one for one in answers]

    async def look(self, key: Item, timeout: float) -> Item:
        """Return an item as it is now, {} if there is none."""
        found = await self.ask("get_item", look_request(key), timeout)
        item: Item = found.get("Item", {})
        return item

    async def find(self, prefix: str, timeout: float) -> list[Item]:
        """Return all items whose record keys start so."""
        end = self._clock() + timeout
        request, items = list_request(prefix), []
        while True:
            page = await self.ask("query", request, max(0.0, end - self._clock()))
            items += [item for item in page["Items"] if item[NAME]["S"] != FLOOR]
            if "LastEvaluatedKey" not in page:
                return items
            request = {**request, "ExclusiveStartKey": page["LastEvaluatedKey"]}

    async def floor(self, key: str, timeout: float) -> int:
        """Return the floor that all names of a namespace share."""
        return number(await self.look(floor_key(key), timeout), "f")

    def _whole(self, request: Request) -> Request:
        return {"TableName": self._settings.table, **request}

    def _missing(self) -> EngineUnavailable:
        _sound.discard(self._identity)
        where = self._settings.location
        return EngineUnavailable(
            f"{where} does not exist any more; it is made anew when it is next used, unless "
            "create=False.",
            engine=where,
        )

    async def describe(self, timeout: float) -> Item:
        """Return the description of the table, which is made if need be."""
        name = {"TableName": self._settings.table}
        if self._identity not in _sound:
            timeout = await self._prepare(timeout)
        try:
            table: Item = (await self._link.ask("describe_table", name, timeout))["Table"]
        except NoTable as error:
            raise self._missing() from error
        return table

    # --- Making it. ---

    async def _prepare(self, timeout: float) -> float:
        """See that the table can be used; return how much time is left."""
        end = self._clock() + timeout
        while True:
            try:
                name = {"TableName": self._settings.table}
                answer = await self._link.ask("describe_table", name, end - self._clock())
                if check_table(answer["Table"], self._settings.location):
                    _sound.add(self._identity)
                    return max(0.001, end - self._clock())
            except NoTable as error:
                await self._make(error, end)
            if self._clock() + POLL >= end:
                where = self._settings.location
                raise EngineUnavailable(
                    f"{where} is still being made, which takes some seconds; try again.",
                    engine=where,
                )
            await asleep(POLL)

    async def _make(self, error: NoTable, end: float) -> None:
        where = self._settings.location
        if not self._create:
            raise EngineUnavailable(
                f"{where} does not exist, and create=False; make it by 'holdfast doctor --fix', "
                "or as docs/engines/dynamodb.md says.",
                engine=where,
            ) from error
        try:
            await self._link.ask(
                "create_table", table_request(self._settings.table), end - self._clock()
            )
        except EngineUnavailable as problem:
            if "ResourceInUseException" not in str(problem):  # else another was quicker
                raise

    # --- Keeping it small. ---

    async def released(self, key: str, timeout: float) -> None:
        """Hear of a release, and now and then forget what has been idle for a day."""
        if dice.chance() < self.forget_chance:
            space = key.rpartition("/")[0]
            try:
                await self.forget(space, wall_micros() - int(FLOOR_LIFETIME * 1e6), timeout)
            except LockError:
                pass  # the next time, or somebody else, will do it

    async def forget(self, space: str, before: int, timeout: float) -> int:
        """Fold away the idle items of one page whose tokens are older; return how many."""
        end = self._clock() + timeout
        key = floor_key(f"{space}/")
        start = (await self.look(key, timeout)).get("n")  # where the last one came to
        request = {**list_request(f"{space}/"), "Limit": FORGET_PAGE, "ConsistentRead": False}
        if start is not None:
            request["ExclusiveStartKey"] = {**key, NAME: start}
        page = await self.ask("query", request, self._left(end))
        graves = wall_micros() - int(BURIED * 1e6)
        idle = [
            item
            for item in page["Items"]
            if item[NAME]["S"] != FLOOR
            and not in_use(item)
            and number(item, "t") < before
            and all(int(at["N"]) < graves for at in item.get("x", {}).get("M", {}).values())
        ]
        gone = await self._fold(space, idle, end) if idle else 0
        stop = page.get("LastEvaluatedKey", {}).get(NAME)
        if stop != start:
            await self.ask("update_item", cursor_request(key, stop), self._left(end))
        return gone

    async def _fold(self, space: str, idle: Sequence[Item], end: float) -> int:
        try:
            highest = max(number(item, "t") for item in idle)
            await self.ask("update_item", raise_floor_request(space, highest), self._left(end))
        except Refused:
            pass  # it is there, or higher
        deletes = [delete_request(item) for item in idle]
        answers = await self.ask_all("delete_item", deletes, self._left(end))
        return sum(not isinstance(answer, Exception) for answer in answers)

    def _left(self, end: float) -> float:
        return max(0.001, end - self._clock())
