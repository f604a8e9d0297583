"""`holdfast show`: who holds a lock, and who waits for it."""

from __future__ import annotations

import time

import click

from .base import Command, Where, complete_name, where_options
from .table import show_table
from .view import ENTRY_HEADERS, entry_rows, print_json, snapshot_json


@click.command(cls=Command)
@click.argument("name", shell_complete=complete_name)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object, with stable keys.")
@where_options
def show(where: Where, name: str, as_json: bool) -> None:
    """Show who holds the lock NAME and who waits for it, in order.

    A free lock is not an error. Of a tree, NAME is the first part of the path.
    """
    with where.connect() as client:
        shot = client.inspect(name)
    now = time.time()
    if as_json:
        print_json({**snapshot_json(shot, now), "name": name})
    elif shot.kind is None:
        click.echo(f"{name!r} is free: nobody holds it or waits for it.")
    else:
        show_table(ENTRY_HEADERS, entry_rows([shot], now))
