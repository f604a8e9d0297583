"""`holdfast lab page`: the page of docs/reliability.md, from a matrix that was measured."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..lab.document import write_page
from .base import Command


@click.command(cls=Command)
@click.argument("matrix", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def page(matrix: Path) -> None:
    """Print the page that says what MATRIX, printed by `holdfast lab matrix --json`, has found."""
    try:
        found = json.loads(matrix.read_text(encoding="utf-8"))
        text = write_page(found)
    except (KeyError, TypeError, json.JSONDecodeError):
        raise ValueError(f"{matrix} is not what `holdfast lab matrix --json` prints.") from None
    click.echo(text, nl=False)
