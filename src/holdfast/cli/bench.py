"""`holdfast bench floor`: what a lock costs beside the least that it could cost, in one run."""

from __future__ import annotations

import json
import math
import sys

import click

from ..bench.floor import FLOORS, Row


@click.group()
def bench() -> None:
    """Measure, as ratios from one run: machines are noisy."""


@bench.command()
@click.argument("engines", nargs=-1, metavar="ENGINE…")
@click.option("--quick", is_flag=True, help="Fewer rounds: seconds instead of half a minute.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def floor(engines: tuple[str, ...], quick: bool, as_json: bool) -> None:
    """Compare engines with a hand-written floor and with peers.

    ENGINE is one or more of those holdfast can measure here (default: all).
    """
    unknown = [name for name in engines if name not in FLOORS]
    if unknown:
        raise click.UsageError(
            f"There is no floor for {', '.join(unknown)}; known: {', '.join(FLOORS)}."
        )
    rows: list[Row] = []
    for name in engines or tuple(FLOORS):
        steps = FLOORS[name](quick)
        with click.progressbar(
            length=len(steps), label=name, file=sys.stderr, hidden=as_json
        ) as bar:
            for step in steps:
                rows.extend(step())
                bar.update(1)
    if as_json:
        click.echo(json.dumps([row._asdict() for row in rows], indent=2))
        return
    width = max(len(row.what) for row in rows)
    for row in rows:
        mark = "" if row.aim is None else ("  ok" if row.value <= row.aim else "  MISSED")
        aim = "" if row.aim is None else f"  (aim ≤ {row.aim:g}{row.unit})"
        value = "" if math.isnan(row.value) else f"{row.value:.3g}{row.unit}"
        click.echo(f"{row.what:<{width}}  {value:>9}{aim}{mark}  {row.note}")
