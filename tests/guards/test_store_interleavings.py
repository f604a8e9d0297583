"""Every order in which the loads and saves of two and three holders can reach a store.

The awaitable guard is driven by hand: each load and each save is a step, and whoever does the next
one is chosen by the schedule. All schedules are tried; what leads to where another has been is
left, for what follows is the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any, ClassVar

import pytest

from holdfast._async.guards.store import AsyncStoreGuard
from holdfast.errors import InProgress, StaleToken
from holdfast.fencing import Fence
from holdfast.model import Mode

DOMAIN, NAME = "model", "counter"
X, S = Mode.EXCLUSIVE, Mode.SHARED


class Step:
    """Gives the schedule its say."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class World:
    """A store with a counter, and what its users were told."""

    def __init__(self) -> None:
        self.row: tuple[int, str | None, int] = (0, None, 0)
        self.answer: object = None  # the last one that the store gave
        self.guard = AsyncStoreGuard(self.load, self.save)
        self.added = 0
        self.refused: list[int] = []
        self.runs = 0
        self.results: list[Any] = []

    async def load(self, resource: str) -> tuple[int, str | None, int]:
        await Step()
        self.answer = self.row
        return self.row

    async def save(self, resource: str, data: int, fence: str, version: int) -> bool:
        await Step()
        self.answer = saved = self.row[2] == version
        if saved:
            self.row = (data, fence, version + 1)
        return saved

    async def add(self, token: int) -> None:
        try:
            async with self.guard.transaction(NAME, Fence(token, DOMAIN)) as item:
                item.write(item.read() + 1)
            self.added += 1
        except (StaleToken, InProgress):
            self.refused.append(token)

    async def look(self, token: int) -> None:
        try:
            async with self.guard.transaction(NAME, Fence(token, DOMAIN, S)) as item:
                self.results.append(item.read())
        except StaleToken:
            self.refused.append(token)

    async def add_once(self, token: int) -> None:
        try:
            async with self.guard.transaction(NAME, Fence(token, DOMAIN)) as item:

                async def work() -> int:
                    self.runs += 1
                    item.write(item.read() + 1)
                    return token

                result = await item.once("key", work)
            self.results.append(result)
        except (StaleToken, InProgress):
            self.refused.append(token)


Holder = Callable[[World], Coroutine[Any, Any, None]]


def adding(token: int) -> Holder:
    return lambda world: world.add(token)


def looking(token: int) -> Holder:
    return lambda world: world.look(token)


def adding_once(token: int) -> Holder:
    return lambda world: world.add_once(token)


class Play:
    """Some holders in one world, up to where a schedule has brought them."""

    owners: ClassVar[Iterator[int]]

    def __init__(self, holders: tuple[Holder, ...], schedule: tuple[int, ...]) -> None:
        Play.owners = itertools.count()
        self.world = World()
        self.schedule = schedule
        self.crowd = {number: holder(self.world) for number, holder in enumerate(holders)}
        self.heard: list[list[object]] = [[] for _ in holders]
        for number in [*self.crowd, *schedule]:  # up to the first step of each, then as planned
            self.advance(number)

    def advance(self, number: int) -> None:
        try:
            self.crowd[number].send(None)
        except StopIteration:
            del self.crowd[number]
        self.heard[number].append(self.world.answer)

    @property
    def place(self) -> object:
        """What decides all that can follow: what is stored, and what each has heard."""
        return self.world.row, tuple(map(tuple, self.heard))

    def close(self) -> None:
        for coroutine in self.crowd.values():
            coroutine.close()


def worlds(*holders: Holder) -> Iterator[World]:
    """Yield how the world ends under each schedule."""
    waiting: list[tuple[int, ...]] = [()]
    seen: set[object] = set()
    while waiting:
        play = Play(holders, waiting.pop())
        if play.place in seen:
            play.close()
            continue
        seen.add(play.place)
        waiting.extend((*play.schedule, number) for number in play.crowd)
        if not play.crowd:
            yield play.world
        play.close()


@pytest.fixture(autouse=True)
def _owners_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a schedule that is played again give the same texts."""
    monkeypatch.setattr("secrets.token_hex", lambda size: str(next(Play.owners)))


CROWDS = {
    "two who add": (adding(1), adding(2)),
    "two callers of one holder": (adding(1), adding(1)),
    "a reader after a writer": (adding(1), looking(2)),
    "a reader between two writers": (adding(1), adding(3), looking(2)),
    "three who add": (adding(1), adding(2), adding(3)),
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_no_addition_is_lost(crowd: str) -> None:
    """Under every schedule the counter says what was added, and somebody always gets through."""
    ends = list(worlds(*CROWDS[crowd]))
    assert len(ends) > 1
    for world in ends:
        assert world.row[0] == world.added
        assert len(world.refused) < len(CROWDS[crowd])


@pytest.mark.parametrize("tokens", [(1, 2), (1, 1)])
def test_work_is_done_once(tokens: tuple[int, int]) -> None:
    """Under every schedule one key is done once, and all who are told a result are told that."""
    for world in worlds(*(adding_once(token) for token in tokens)):
        assert world.row[0] == 1
        assert len(set(world.results)) == 1
        if tokens == (1, 1):
            assert world.runs == 1, "callers of one holder never run at the same time"


def test_what_was_read_stays_true() -> None:
    """Under every schedule, what a newer reader has read is not changed by an older writer."""
    for world in worlds(adding(1), looking(2)):
        assert world.results == [world.row[0]]
