"""The floor of each engine: the least a lock could cost, measured beside what ours costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table: a figure (NaN: none, the note says why), its unit, and its aim.

    An aim is the most that the figure may be, or the least if `at_least`.
    """

    what: str
    value: float
    unit: str
    aim: float | None = None
    note: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None where there is no aim."""
        if self.aim is None:
            return None
        return self.value >= self.aim if self.at_least else self.value <= self.aim


Step = Callable[[], list[Row]]


def _memory(quick: bool) -> list[Step]:
    from .memory_floor import steps

    return steps(quick)


def _sqlite(quick: bool) -> list[Step]:
    from .sqlite_floor import steps

    return steps(quick)


def _redis(quick: bool) -> list[Step]:
    from .redis_floor import steps

    return steps(quick)


def _redlock(quick: bool) -> list[Step]:
    from .redlock_floor import steps

    return steps(quick)


def _observe(quick: bool) -> list[Step]:
    from .observe_cost import steps

    return steps(quick)


def _zookeeper(quick: bool) -> list[Step]:
    from .zookeeper_floor import steps

    return steps(quick)


def _etcd(quick: bool) -> list[Step]:
    from .etcd_floor import steps

    return steps(quick)


def _dynamodb(quick: bool) -> list[Step]:
    from .dynamodb_floor import steps

    return steps(quick)


def _postgresql(quick: bool) -> list[Step]:
    from .postgres_floor import steps

    return steps(quick)


FLOORS: dict[str, Callable[[bool], list[Step]]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "redis": _redis,
    "redlock": _redlock,
    "postgresql": _postgresql,
    "dynamodb": _dynamodb,
    "zookeeper": _zookeeper,
    "etcd": _etcd,
    "observe": _observe,
}
