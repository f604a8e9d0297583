"""Plots as inline SVG: distributions, and lines over the number of clients; readable on a phone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from ..contestant import FLOOR, OURS
from .document import Document, Row
from .words import duration_text, short

WIDTH = 360
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 26
COLOURS = 6
LANE = 30

STYLE = """
.plot { width: 100%; height: auto; max-width: 560px; display: block }
.plot text { font: 11px system-ui, sans-serif; fill: var(--ink) }
.plot .quiet { fill: var(--dim) } .plot .grid { stroke: var(--line) }
.ours { --hue: var(--c-ours) } .floor { --hue: var(--c-floor) }
.k0 { --hue: #c2571a } .k1 { --hue: #2f7d32 } .k2 { --hue: #8e44ad }
.k3 { --hue: #b8860b } .k4 { --hue: #c2185b } .k5 { --hue: #00838f }
.plot .wide { stroke: var(--hue); stroke-width: 2; opacity: .55 }
.plot .thick { stroke: var(--hue); stroke-width: 9; opacity: .45 }
.plot .dot { fill: var(--hue) } .plot .tick { stroke: var(--hue); stroke-width: 2 }
.plot .line { fill: none; stroke: var(--hue); stroke-width: 2 }
.plot .ours .line, .plot .ours .wide { stroke-width: 3.5; opacity: 1 }
.plot .floor .line { stroke-dasharray: 4 3 }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; padding: 0; margin: 0 }
.key li::before { content: "●"; color: var(--hue); margin-right: .3rem }
"""


class Axis(NamedTuple):
    """A logarithmic axis from low to high over some pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return where a value is."""
        clamped = min(self.high, max(self.low, value))
        share = math.log(clamped / self.low) / max(1e-9, math.log(self.high / self.low))
        return round(self.start + share * (self.end - self.start), 1)

    def decades(self) -> Iterator[float]:
        """Yield the powers of ten on it."""
        for power in range(math.ceil(math.log10(self.low) - 1e-9), 20):
            if 10.0**power > self.high * 1.0001:
                return
            yield 10.0**power


def axis_over(values: Sequence[float], start: float, end: float) -> Axis:
    """Return an axis with room for all values, and at least one decade."""
    low = 10 ** math.floor(math.log10(min(values)))
    high = 10 ** math.ceil(math.log10(max(values)) + 1e-9)
    return Axis(low, max(high, low * 10), start, end)


def classes(rows: Sequence[Row]) -> dict[str, str]:
    """Return the CSS class of each contestant: ours and the floor look the same everywhere."""
    fixed = {OURS: "ours", FLOOR: "floor"}
    peers = sorted({row["contestant"] for row in rows if row["role"] not in fixed})
    found = {row["contestant"]: fixed[row["role"]] for row in rows if row["role"] in fixed}
    return found | {name: f"k{number % COLOURS}" for number, name in enumerate(peers)}


def distributions(rows: Sequence[Row], colours: Mapping[str, str]) -> str:
    """Draw how long acquiring takes: 1 to 99.9 % as a line, the middle half thick, the median."""
    drawn = [row for row in rows if row["curve"]]
    if not drawn:
        return ""
    values = [micros for row in drawn for _, micros in row["curve"][:-1] if micros > 0]
    axis = axis_over(values, 8, WIDTH - RIGHT)
    height = TOP + LANE * len(drawn) + BOTTOM
    parts = [_open(height, "How long acquiring takes, by contestant")]
    for value in axis.decades():
        x = axis.at(value)
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{height - BOTTOM}"/>')
        parts.append(_label(x, height - 10, duration_text(value), _anchor(x)))
    for number, row in enumerate(drawn):
        parts.append(_distribution(row, axis, TOP + LANE * number, colours))
    return "".join((*parts, "</svg>"))


def _distribution(row: Row, axis: Axis, top: int, colours: Mapping[str, str]) -> str:
    at = {percent: axis.at(micros) for percent, micros in row["curve"]}
    figures = {percent: duration_text(micros) for percent, micros in row["curve"]}
    y = top + 20
    title = f"{row['contestant']}: " + ", ".join(
        f"p{percent:g} {figures[percent]}" for percent in (50, 90, 99, 99.9)
    )
    name = f"{row['contestant']}  {figures[50]}, p99 {figures[99]}"
    return (
        f'<g class="{colours[row["contestant"]]}"><title>{escape(title)}</title>'
        f'<text x="8" y="{top + 11}">{escape(name)}</text>'
        f'<line class="wide" x1="{at[1]}" x2="{at[99.9]}" y1="{y}" y2="{y}"/>'
        f'<line class="thick" x1="{at[25]}" x2="{max(at[75], at[25] + 1)}" y1="{y}" y2="{y}"/>'
        f'<line class="tick" x1="{at[99]}" x2="{at[99]}" y1="{y - 5}" y2="{y + 5}"/>'
        f'<circle class="dot" cx="{at[50]}" cy="{y}" r="4.5"/></g>'
    )


def lines(rows: Sequence[Row], figure: str, colours: Mapping[str, str], across: str) -> str:
    """Draw a rate over the number of clients, a line for each contestant."""
    points: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        value = row["figures"].get(figure)
        if value:
            points.setdefault(row["contestant"], []).append((row["clients"], value))
    if not points:
        return ""
    values = [value for some in points.values() for _, value in some]
    counts = sorted({clients for some in points.values() for clients, _ in some})
    height = 230
    down = axis_over(values, height - BOTTOM - 10, TOP)
    right = Axis(counts[0], max(counts[-1], counts[0] * 2), LEFT + 8, WIDTH - RIGHT - 8)
    parts = [_open(height, f"{figure} by {across}")]
    for value in down.decades():
        y = down.at(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(_label(LEFT - 6, y + 4, short(value), "end"))
    for count in counts:
        parts.append(_label(right.at(count), height - 20, str(count), "middle"))
    parts.append(_label(WIDTH - RIGHT, height - 5, across, "end"))
    for name, some in points.items():
        path = " ".join(f"{right.at(x)},{down.at(y)}" for x, y in sorted(some))
        told = ", ".join(f"{short(y)}/s with {x}" for x, y in sorted(some))
        parts.append(
            f'<g class="{colours[name]}"><title>{escape(f"{name}: {told}")}</title>'
            f'<polyline class="line" points="{path}"/>'
        )
        for x, y in some:
            parts.append(f'<circle class="dot" cx="{right.at(x)}" cy="{down.at(y)}" r="3.5"/>')
        parts.append("</g>")
    return "".join((*parts, "</svg>"))


def legend(colours: Mapping[str, str], rows: Sequence[Row]) -> str:
    """Return who has which colour."""
    present = {row["contestant"] for row in rows if not row["problem"]}
    items = (
        f'<li class="{kind}">{escape(name)}</li>'
        for name, kind in colours.items()
        if name in present
    )
    return f'<ul class="key">{"".join(items)}</ul>'


def rows_of(document: Document, engine: str, *scenarios: str) -> list[Row]:
    """Return the rows of an engine's scenarios."""
    return [
        row
        for row in document["rows"]
        if row["engine"] == engine and row["scenario"] in scenarios and not row["problem"]
    ]


def _open(height: float, label: str) -> str:
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(label)}" xmlns="http://www.w3.org/2000/svg">'
    )


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="quiet" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _anchor(x: float) -> str:
    if x < LEFT:
        return "start"
    return "end" if x > WIDTH - 30 else "middle"
