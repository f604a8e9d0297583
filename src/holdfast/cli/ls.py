"""`holdfast ls`: every lock in use."""

from __future__ import annotations

import time

import click

from .base import Command, Where, complete_name, where_options
from .table import on_terminal, show_table
from .view import LOCK_HEADERS, lock_rows, print_json, snapshot_json


@click.command(cls=Command)
@click.argument("prefix", default="", shell_complete=complete_name)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, with stable keys.")
@where_options
def ls(where: Where, prefix: str, as_json: bool) -> None:
    """List the locks in use whose name starts with PREFIX (default: all).

    SINCE is how long the first holder has it, LEFT when the engine drops it without news from
    its holder (who sends news every third of the TTL).
    """
    with where.connect() as client:
        shots = client.locks(prefix)
        place = client.engine.location
    now = time.time()
    if as_json:
        print_json([snapshot_json(shot, now) for shot in shots])
    elif shots:
        show_table(LOCK_HEADERS, lock_rows(shots, now))
    elif on_terminal():
        which = f" that starts with {prefix!r}" if prefix else ""
        click.echo(f"No lock{which} is in use in namespace {client.namespace!r} on {place}.")
