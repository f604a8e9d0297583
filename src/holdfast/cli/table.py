"""Tables: drawn on a terminal, plain columns when piped."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from .text import safe

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Cell(NamedTuple):
    """A piece of text, and how it looks on a terminal (a rich style)."""

    text: str
    style: str = ""


Row = Sequence[Cell]


def on_terminal() -> bool:
    """Say whether a person looks at standard output."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def console() -> Console:
    """Return the terminal; nothing in a text has a meaning there, NO_COLOR is respected."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False, soft_wrap=False)


def drawn(headers: Sequence[str], rows: Sequence[Row]) -> RenderableType:
    """Return a table for the terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for header in headers:
        right = header in ("TOKEN", "WAITING")
        table.add_column(header, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(safe(cell.text), cell.style) for cell in row))
    return table


def plain(headers: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the same as columns of text, without colour and without a line at the end."""
    texts = [list(headers), *([safe(cell.text) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in texts) for column in range(len(headers))]
    lines = (
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in texts
    )
    return "\n".join(lines)


def show_table(headers: Sequence[str], rows: Sequence[Row]) -> None:
    """Print a table as standard output likes it."""
    if on_terminal():
        console().print(drawn(headers, rows))
    else:
        click.echo(plain(headers, rows))
