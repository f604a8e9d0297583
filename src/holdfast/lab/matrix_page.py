"""The matrix as an HTML page: the table, and below it the picture of each history."""

from __future__ import annotations

from .html import page, tag, wrap
from .matrix import Cell, Matrix
from .nemeses import NEMESES
from .picture import LEGEND, draw
from .verdict import BROKEN, DOCUMENTED, HELD, IMPOSSIBLE, PROMISES

CLASSES = {HELD: "held", DOCUMENTED: "documented", BROKEN: "broken", IMPOSSIBLE: "impossible"}
INTRODUCTION = (
    "Real servers, real processes, real faults, on one machine. Held: every promise was kept. "
    "Broken as documented: something broke that the engine does not promise under this fault. "
    "Broken: a promise was not kept. A star: kept, though it is not promised."
)


def matrix_page(matrix: Matrix) -> str:
    """Return the whole page."""
    parts = [
        tag("h1", "Engines under faults"),
        tag("p", INTRODUCTION),
        tag("p", f"Seed {matrix.seed}, {matrix.seconds:g} s of faults for each cell."),
        _table(matrix),
        tag("p", LEGEND, class_="dim"),
        *(_section(cell) for cell in matrix.cells.values() if cell.report is not None),
    ]
    return page("holdfast lab: engines under faults", "\n".join(parts))


def _table(matrix: Matrix) -> str:
    heads = "".join(tag("th", text) for text in ("fault", *matrix.engines))
    rows = [wrap("tr", heads)]
    for fault in matrix.faults:
        cells = (matrix.cells[engine, fault] for engine in matrix.engines)
        name = wrap("th", tag("abbr", fault, title=NEMESES[fault].says))
        rows.append(wrap("tr", name + "".join(wrap("td", _word(cell)) for cell in cells)))
    return wrap("table", "\n".join(rows))


def _word(cell: Cell) -> str:
    if cell.report is None:
        return tag("span", "–", class_="impossible", title=cell.reason)
    text = cell.outcome + ("*" if cell.outcome == HELD and not cell.promised else "")
    return tag("a", text, class_=CLASSES[cell.outcome], href=f"#{_anchor(cell)}")


def _anchor(cell: Cell) -> str:
    return f"{cell.engine}-{cell.fault}"


def _section(cell: Cell) -> str:
    report = cell.report
    assert report is not None
    found = ", ".join(
        f"{PROMISES[verdict.promise].name} {verdict.outcome}" for verdict in report.verdicts
    )
    guard = report.of("G").note
    return "\n".join(
        [
            tag("h2", f"{cell.engine}: {cell.fault}", id=_anchor(cell)),
            tag("p", f"{NEMESES[cell.fault].says[:1].upper()}{NEMESES[cell.fault].says[1:]}."),
            tag("p", f"{len(report.chronicle.acquired)} leases. {found}. Resource: {guard}."),
            draw(report.chronicle, report.of("E").violations),
            wrap("p", tag("code", report.replay), class_="dim"),
        ]
    )
