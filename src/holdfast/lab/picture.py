"""The picture of a history, as SVG: who believed to hold, tokens, writes, faults, on one clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from ..testing.simulation.checkers import Records, Violation
from ..testing.simulation.history import Paused
from .assignment import RUSH
from .chronicle import Chronicle, Span
from .nemeses import NEMESES
from .nemesis import CLIENTS
from .register import GUARDED, UNGUARDED, Entry

WIDTH, LEFT, RIGHT = 1000, 100, 10
LANE, BAR = 20, 12
TOP = 46  # two rows of faults
AXIS = 22
LABELLED = 34  # pixels a bar needs for its token
TOOLTIP = 3  # pixels a bar needs for a tooltip of its own
LONG_STALL = 0.1  # seconds; shorter ones are a busy machine's
COLOURS = 4

STYLE = """
.lab text { font: 11px system-ui, sans-serif; fill: currentColor }
.lab .axis { stroke: currentColor; opacity: .15 }
.lab .k0 { fill: #4c78a8 } .lab .k1 { fill: #54a24b } .lab .k2 { fill: #b279a2 }
.lab .k3 { fill: #9d755d }
.lab .fault { fill: #f2cf5b; opacity: .55 } .lab .shade { fill: #f2cf5b; opacity: .12 }
.lab .healed { stroke: currentColor; stroke-dasharray: 3 3 } .lab .own { fill: #bab0ac }
.lab .still { fill: currentColor; opacity: .18 }
.lab .refused { stroke: #2a9d2a; stroke-width: 2 } .lab .lost { fill: #e45756 }
.lab .both { stroke: #e45756; stroke-width: 1.5 }
.lab .token { fill: #fff; font-size: 10px }
"""


class Hold(NamedTuple):
    """The time during which one client relied on a lock."""

    client: str
    lock: str
    token: int
    start: float
    end: float
    how: str


def holds_of(chronicle: Chronicle) -> list[Hold]:
    """Return all holds, each from when it was in hand to when it was let go or could no longer be
    relied on."""
    ends = Records(chronicle.records).first_ends()
    holds = []
    for lease in chronicle.acquired:
        end = ends.get(lease.owner)
        until = chronicle.over if end is None else min(end.at, end.deadline)
        how = "never ended" if end is None else end.how
        hold = Hold(lease.client, lease.lock, lease.token, lease.at, max(until, lease.at), how)
        holds.append(hold)
    return holds


def draw(chronicle: Chronicle, overlaps: Sequence[Violation] = ()) -> str:
    """Return the picture; `overlaps` are marked by red lines."""
    return "\n".join(_Picture(chronicle).parts(overlaps))


class _Picture:
    """One drawing."""

    def __init__(self, chronicle: Chronicle) -> None:
        self._chronicle = chronicle
        self._holds = [hold for hold in holds_of(chronicle) if hold.lock not in RUSH]
        self._lanes = {name: number for number, name in enumerate(_rows(chronicle))}
        locks = sorted({hold.lock for hold in self._holds})
        self._colours = {
            lock: "own" if lock.startswith("own/") else f"k{number % COLOURS}"
            for number, lock in enumerate(locks)
        }
        self._ranks = _ranks(self._holds)
        self._height = TOP + LANE * len(self._lanes) + AXIS
        self._scale = (WIDTH - LEFT - RIGHT) / max(chronicle.over, 0.001)

    def _x(self, at: float) -> float:
        return round(LEFT + max(0.0, at) * self._scale, 1)

    def _y(self, client: str) -> int:
        return TOP + LANE * self._lanes[_row(client)] + (LANE - BAR) // 2

    def parts(self, overlaps: Sequence[Violation]) -> Iterator[str]:
        """Yield the elements, back to front."""
        yield (
            f'<svg class="lab" viewBox="0 0 {WIDTH} {self._height}" role="img" '
            f'aria-label="Who held what, and what happened" xmlns="http://www.w3.org/2000/svg">'
        )
        yield from self._axis()
        if self._chronicle.healed < self._chronicle.over:
            x = self._x(self._chronicle.healed)
            yield f'<line class="healed" x1="{x}" x2="{x}" y1="4" y2="{self._height - AXIS}">'
            yield "<title>all faults are over</title></line>"
        for span in self._chronicle.faults:
            yield from self._fault(span)
        yield from self._stalls()
        yield from self._bars()
        for entry in self._chronicle.entries:
            yield from self._mark(entry)
        for overlap in overlaps:
            x = self._x(overlap.at)
            yield f'<line class="both" x1="{x}" x2="{x}" y1="{TOP}" y2="{self._height - AXIS}">'
            yield f"<title>{escape(overlap.sentence)}</title></line>"
        yield "</svg>"

    def _axis(self) -> Iterator[str]:
        bottom = self._height - AXIS
        step = next(one for one in (0.1, 0.5, 1, 5, 10, 60, 600) if self._chronicle.over / one < 21)
        for number in range(int(self._chronicle.over / step) + 1):
            x = self._x(number * step)
            yield f'<line class="axis" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"/>'
            yield f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{number * step:g} s</text>'
        for name, number in self._lanes.items():
            y = TOP + LANE * number + LANE / 2 + 4
            yield f'<text x="{LEFT - 8}" y="{y}" text-anchor="end">{escape(name)}</text>'

    def _fault(self, span: Span) -> Iterator[str]:
        side = NEMESES[span.name].side if span.name in NEMESES else CLIENTS
        x, y = self._x(span.start), 2 if side == CLIENTS else 22
        width = max(2.0, round(self._x(span.end) - x, 1))
        height = self._height - AXIS - y
        title = f"<title>{escape(f'{span.name}: {span.detail}')}</title>"
        yield f'<rect class="shade" x="{x}" y="{y}" width="{width}" height="{height}"/>'
        yield f'<rect class="fault" x="{x}" y="{y}" width="{width}" height="16">{title}</rect>'
        if width > 7 * len(span.name):
            yield f'<text x="{x + 3}" y="{y + 12}">{escape(span.name)}</text>'

    def _stalls(self) -> Iterator[str]:
        for record in self._chronicle.records:
            if isinstance(record, Paused) and record.until - record.at > LONG_STALL:
                x, y = self._x(record.at), self._y(record.client) - 2
                width = round(self._x(record.until) - x, 1)
                title = f"did not run for {record.until - record.at:.2f} s"
                yield (
                    f'<rect class="still" x="{x}" y="{y}" width="{width}" height="{BAR + 4}">'
                    f"<title>{title}</title></rect>"
                )

    def _bars(self) -> Iterator[str]:
        thin: dict[tuple[str, str], list[str]] = {}
        for hold in self._holds:
            x, y = self._x(hold.start), self._y(hold.client)
            width = max(1.0, round(self._x(hold.end) - x, 1))
            colour = self._colours[hold.lock]
            if width < TOOLTIP:
                step = f"M{x:g} {y}h{width:g}v{BAR}h-{width:g}z"
                thin.setdefault((hold.client, colour), []).append(step)
                continue
            title = (
                f"{hold.lock}, token {hold.token}, {hold.start:.3f} to {hold.end:.3f} s: {hold.how}"
            )
            yield (
                f'<rect class="{colour}" x="{x}" y="{y}" width="{width}" height="{BAR}" rx="2">'
                f"<title>{escape(title)}</title></rect>"
            )
            if width > LABELLED:
                rank = self._ranks[hold.lock, hold.token]
                yield f'<text class="token" x="{x + 3}" y="{y + BAR - 2}">#{rank}</text>'
        for (_, colour), steps in thin.items():
            yield f'<path class="{colour}" d="{"".join(steps)}"/>'

    def _mark(self, entry: Entry) -> Iterator[str]:
        """Draw what a guard refused, and what was lost without one."""
        if _row(entry.client) not in self._lanes:
            return
        x, y = self._x(entry.at), self._y(entry.client)
        if entry.refused and entry.kind == GUARDED:
            title = f"<title>refused: {escape(entry.refused)}</title>"
            cross = f"M{x - 4} {y + 1}l8 10m0 -10l-8 10"
            yield f'<path class="refused" d="{cross}">{title}</path>'
        elif entry.kind == UNGUARDED and entry.based_on != entry.found and not entry.refused:
            title = f"lost update: wrote over {entry.found}, having read {entry.based_on}"
            triangle = f"M{x - 4} {y + BAR + 3}h8l-4 -7z"
            yield f'<path class="lost" d="{triangle}"><title>{title}</title></path>'


def _row(client: str) -> str:
    """Return in whose lane a client is drawn: who comes after a killed one takes its place."""
    return client.partition("+")[0]


def _rows(chronicle: Chronicle) -> list[str]:
    names = {_row(client) for client in chronicle.clients}
    names |= {_row(one.client) for one in chronicle.records if isinstance(one, Paused)}
    return sorted(names)


def _ranks(holds: Sequence[Hold]) -> dict[tuple[str, int], int]:
    """Number the tokens of each lock, from the lowest: the long ones say no more."""
    tokens: dict[str, set[int]] = {}
    for hold in holds:
        tokens.setdefault(hold.lock, set()).add(hold.token)
    return {
        (lock, token): rank
        for lock, found in tokens.items()
        for rank, token in enumerate(sorted(found), 1)
    }


LEGEND = (
    "A bar is the time during which a client relied on a lock (one colour for each lock), with the "
    "rank of its token. Yellow: a fault. Grey: the process did not run. A green cross: "
    "the guard refused a write. A red triangle: without a guard, an update was lost. A red line: "
    "two clients relied on the same lock."
)
