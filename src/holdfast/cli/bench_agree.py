"""`holdfast bench compare A.json B.json`: how far two runs tell the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import click

from ..bench.compare.document import Document, faults
from ..bench.compare.stability import ENOUGH, TOLERANCE, agree
from ..bench.compare.words import value_text
from .base import FOUND_SOMETHING, Command
from .table import Cell, show_table
from .text import count

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(name="compare", cls=Command)
@click.argument("first", type=FILE, metavar="A.json")
@click.argument("second", type=FILE, metavar="B.json")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def agree_(first: Path, second: Path, as_json: bool) -> None:
    """Say how many ratios of two runs agree, and list the others.

    The files are what `holdfast bench --json FILE` wrote. The exit code is 1 if fewer agree than
    a bench must reach.
    """
    agreement = agree(_read(first), _read(second))
    if as_json:
        differences = [one._asdict() for one in agreement.differences]
        said = {**agreement._asdict(), "share": agreement.share, "differences": differences}
        click.echo(json.dumps(said, indent=2))
    else:
        if agreement.differences:
            rows = [
                [
                    Cell(one.what),
                    Cell(value_text(one.first)),
                    Cell(value_text(one.second)),
                    Cell("marked unstable" if one.marked else "not marked"),
                ]
                for one in agreement.differences
            ]
            show_table(("RATIO", "FIRST", "SECOND", ""), rows)
        click.echo(
            f"{agreement.within} of {count(agreement.common, 'common ratio')} agree within "
            f"{TOLERANCE:.0%}: {agreement.share:.0%}, at least {ENOUGH:.0%} must."
        )
    if not agreement.enough:
        raise SystemExit(FOUND_SOMETHING)


def _read(file: Path) -> Document:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is no JSON document: {error}.") from None
    if wrong := faults(document):
        raise ValueError(f"{file} is no document of `holdfast bench`: {wrong[0]}.")
    return cast(Document, document)
