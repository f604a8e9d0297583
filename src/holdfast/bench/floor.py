"""The floor of each engine: the least a lock could cost, measured beside what ours costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table: a figure, its unit, and the aim it must not exceed, if any."""

    what: str
    value: float
    unit: str
    aim: float | None = None
    note: str = ""


Step = Callable[[], list[Row]]


def _memory(quick: bool) -> list[Step]:
    from .memory_floor import steps

    return steps(quick)


def _sqlite(quick: bool) -> list[Step]:
    from .sqlite_floor import steps

    return steps(quick)


FLOORS: dict[str, Callable[[bool], list[Step]]] = {"memory": _memory, "sqlite": _sqlite}
