"""Locks that others have written, beside a floor: one may be missing, or fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Self

from .contestant import Contestant, Place, why_not
from .floor import Row
from .handle import pair_of
from .peers.redis_ones import Pottery, PythonRedisLock, RedisPy, RedlockPy
from .redis_servers import no_figure
from .timing import ratio

TTL = 30  # seconds
Pair = Callable[[], object]  # take and give back
MakePair = Callable[[ExitStack, Sequence[str]], Pair]


def repeated(times: int, pair: Pair) -> Callable[[], None]:
    """Return a function that does it so many times."""

    def run() -> None:
        for _ in range(times):
            pair()

    return run


class Peer:
    """Somebody else's lock, free and uncontended; `problem` says why it has no figure."""

    def __init__(self, name: str, make: MakePair, addresses: Sequence[str]) -> None:
        self.name = name
        self.problem = ""
        self._pair: Pair = lambda: None
        self._stack = ExitStack()
        try:
            self._pair = make(self._stack, addresses)
        except Exception as error:
            self.problem = why_not(error)

    @classmethod
    def of(cls, kind: type[Contestant], place: Place) -> Self:
        """Return a contestant as a peer, named with what it lacks."""
        return cls(f"{kind.name} ({kind.lacks})", pair_maker(kind, place), place.addresses)

    def repeated(self, times: int) -> Callable[[], None]:
        """Return a function that takes and gives back so many times, and never raises."""
        run = repeated(times, self._pair)

        def guarded() -> None:
            if self.problem:
                return
            try:
                run()
            except Exception as error:
                self.problem = why_not(error)

        return guarded

    def row(self, beside: str, floor: list[float], times: list[float]) -> Row:
        """Return its ratio to the floor, or why there is none."""
        what = f"{self.name} / {beside}"
        if self.problem:
            return no_figure(what, self.problem)
        return ratio(what, floor, times, None)

    def close(self) -> None:
        """Close its connections."""
        self._stack.close()


def pair_maker(kind: type[Contestant], place: Place) -> MakePair:
    """Return what makes a pair of a contestant: on other servers, if they are named."""

    def make(stack: ExitStack, addresses: Sequence[str]) -> Pair:
        there = place._replace(addresses=tuple(addresses))
        return pair_of(kind(stack, there).lock("pair"))

    return make


def _on_redis(*kinds: type[Contestant]) -> dict[str, MakePair]:
    anywhere = Place("redis", "")
    return {f"{kind.name} ({kind.lacks})": pair_maker(kind, anywhere) for kind in kinds}


ON_ONE = _on_redis(RedisPy, PythonRedisLock)
ON_MANY = _on_redis(RedlockPy, Pottery)
