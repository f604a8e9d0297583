"""A telling as text: one line for each actor, one column for each moment."""

from __future__ import annotations

from collections.abc import Iterator

from ..testing.simulation.history import Paused
from .picture import LONG_STALL, holds_of
from .register import GUARDED
from .stories import Telling

HELD, STILL, BOTH, IDLE = "█", "░", "▓", "·"
TAKEN, REFUSED = "w", "✗"
NAME = 10  # columns for names

LEGEND = (
    f"{HELD} relies on the lock   {STILL} does not run   {BOTH} both",
    f"{TAKEN} the guard takes a write   {REFUSED} it refuses one",
)


def draw(telling: Telling, width: int = 100) -> Iterator[str]:
    """Yield the lines of the drawing, no longer than `width`."""
    chart = _Chart(telling, max(20, width - NAME - 1))
    yield from chart.faults()
    for client in sorted({hold.client for hold in chart.holds}):
        yield chart.lane(client)
    yield chart.axis()
    for line in LEGEND:
        yield f"{'':{NAME}} {line}"


class _Chart:
    """Instants as columns."""

    def __init__(self, telling: Telling, columns: int) -> None:
        self._chronicle = telling.chronicle
        self.holds = holds_of(telling.chronicle)
        self._columns = columns
        self._end = max(telling.chronicle.over, 0.001)

    def _column(self, at: float) -> int:
        return min(self._columns - 1, max(0, int(at / self._end * self._columns)))

    def _line(self, name: str, cells: list[str]) -> str:
        return f"{name[:NAME]:>{NAME}} {''.join(cells)}".rstrip()

    def faults(self) -> Iterator[str]:
        """Yield one line for each fault."""
        for span in self._chronicle.faults:
            cells = [" "] * self._columns
            for column in range(self._column(span.start), self._column(span.end) + 1):
                cells[column] = "━"
            yield self._line(span.name, cells)

    def lane(self, client: str) -> str:
        """Return what one actor did."""
        cells = [IDLE] * self._columns
        for record in self._chronicle.records:
            long = isinstance(record, Paused) and record.until - record.at > LONG_STALL
            if isinstance(record, Paused) and long and record.client == client:
                self._fill(cells, record.at, record.until, STILL)
        for hold in self.holds:
            if hold.client == client:
                self._fill(cells, hold.start, hold.end, HELD)
        for entry in self._chronicle.entries:
            if entry.client == client and entry.kind == GUARDED:
                cells[self._column(entry.at)] = REFUSED if entry.refused else TAKEN
        return self._line(client, cells)

    def _fill(self, cells: list[str], start: float, end: float, sign: str) -> None:
        for column in range(self._column(start), self._column(end) + 1):
            cells[column] = BOTH if cells[column] not in (IDLE, sign) else sign

    def axis(self) -> str:
        """Return the scale."""
        cells = [" "] * self._columns
        step = 0.1 if self._end < 0.8 else 0.5
        for number in range(int(self._end / step) + 1):
            text, column = f"{number * step:g}", self._column(number * step)
            if column + len(text) <= self._columns:
                cells[column : column + len(text)] = list(text)
        return self._line("seconds", cells)
