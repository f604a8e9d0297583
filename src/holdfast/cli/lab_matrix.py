"""`holdfast lab matrix`: every engine under every fault, as a table, JSON and a page."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import click

from ..lab.experiment import Progress
from ..lab.matrix import Cell as MatrixCell
from ..lab.matrix import Matrix, measure
from ..lab.matrix_page import matrix_page
from ..lab.nemeses import NEMESES, find
from ..lab.network import isolate
from ..lab.verdict import HELD, IMPOSSIBLE
from .base import FOUND_SOMETHING, say
from .lab import LabCommand, engine_option, fault_option, seed_option
from .lab_run import STYLES, choose_engines
from .progress import bar
from .table import Cell, show_table


@click.command(cls=LabCommand)
@engine_option
@fault_option
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3600),
    default=6.0,
    show_default=True,
    metavar="S",
    help="How long the faults of one cell go on.",
)
@seed_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write a page with the picture of each history.",
)
def matrix(
    engines: tuple[str, ...],
    faults: tuple[str, ...],
    seconds: float,
    seed: int,
    as_json: bool,
    html: Path | None,
) -> None:
    """Put every engine through every fault, each by itself.

    A cell says "held" (a star: though it is not promised), "broken as documented" (the engine does
    not promise this, see its `guarantees`), or "broken": then the exit code is 1.
    """
    find(faults)
    say(f"seed {seed}")
    network = isolate()
    chosen = choose_engines(engines)
    with ExitStack() as stack:
        shown = _Bars(stack, len(chosen) * len(faults or NEMESES), as_json)
        found = measure(chosen, faults, seconds, seed, network, shown.next)
    if html is not None:
        html.write_text(matrix_page(found), encoding="utf-8")
        say(f"The page is {html}.")
    if as_json:
        click.echo(json.dumps(found.document(), indent=1))
    else:
        _show(found)
    for cell in found.broken:
        assert cell.report is not None
        say(f"{cell.engine} under {cell.fault} broke a promise: {cell.report.folder}")
        say(f"The same faults again: {cell.report.replay}")
    if found.broken:
        raise SystemExit(FOUND_SOMETHING)


class _Bars:
    """One bar over all cells."""

    def __init__(self, stack: ExitStack, cells: int, hidden: bool) -> None:
        self._bar = stack.enter_context(bar("matrix", hidden))
        self._cells, self._number = cells, -1

    def next(self, engine: str, fault: str) -> Progress:
        """Begin a cell."""
        self._number += 1
        done = self._number

        def show(share: float, what: str) -> None:
            self._bar.show((done + share) / self._cells, f"{engine}, {fault}: {what}")

        return show


def _show(found: Matrix) -> None:
    rows = [
        [Cell(fault), *(_cell(found.cells[engine, fault]) for engine in found.engines)]
        for fault in found.faults
    ]
    show_table(("FAULT", *found.engines), rows)
    click.echo("\n* kept, though it is not promised")
    reasons = {
        f"{cell.engine}: {cell.reason}" for cell in found.cells.values() if cell.report is None
    }
    for reason in sorted(reasons):
        click.echo(f"– not possible, {reason}")


def _cell(cell: MatrixCell) -> Cell:
    if cell.outcome == IMPOSSIBLE:
        return Cell("–", "dim")
    star = "*" if cell.outcome == HELD and not cell.promised else ""
    return Cell(f"{cell.outcome}{star}", STYLES[cell.outcome])
