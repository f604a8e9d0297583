"""`holdfast bench floor`: what a lock costs beside the least that it could cost, in one run."""

from __future__ import annotations

import json
import math
import sys

import click

from ..bench.floor import FLOORS, Row


@click.command()
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
        click.echo(json.dumps([_document(row) for row in rows], indent=2))
        return
    width = max(len(row.what) for row in rows)
    for row in rows:
        click.echo(f"{row.what:<{width}}  {_figure(row):>9}{_judgement(row)}  {row.note}")


def _document(row: Row) -> dict[str, object]:
    """Return a row for JSON, which has no word for what is not a number."""
    return row._asdict() | {"value": row.value if math.isfinite(row.value) else None}


def _figure(row: Row) -> str:
    if math.isnan(row.value):
        return ""
    digits = ",.0f" if 1000 <= row.value < math.inf else ".3g"
    return f"{row.value:{digits}}{row.unit}"


def _judgement(row: Row) -> str:
    if row.aim is None:
        return ""
    sign, word = "≥" if row.at_least else "≤", "ok" if row.met else "MISSED"
    return f"  (aim {sign} {row.aim:g}{row.unit})  {word}"
