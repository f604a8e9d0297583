"""`holdfast break`: take a lock away from its holder."""

from __future__ import annotations

import sys
import time

import click

from ..model import Snapshot
from .base import Command, Where, complete_name, where_options
from .table import plain
from .text import count
from .view import ENTRY_HEADERS, entry_rows, print_json


@click.command(cls=Command, name="break")
@click.argument("name", shell_complete=complete_name)
@click.option("--token", type=int, metavar="T", help="Only the holder with this token.")
@click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can answer.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object, with stable keys.")
@where_options
def break_(where: Where, name: str, token: int | None, yes: bool, as_json: bool) -> None:
    """Take the lock NAME away from its holders; those who wait move up.

    The holder is told, but may go on working until it hears of it: make sure that it is dead, or
    that what it writes to checks tokens. A dead holder's lock comes free by itself after its TTL;
    breaking it is for those who cannot wait.
    """
    if not yes and not _someone_is_there():
        raise click.UsageError(
            "Breaking a lock asks first, and there is no terminal to answer on: add --yes."
        )
    with where.connect() as client:
        shot = client.inspect(name)
        if not yes:
            _ask(shot, name, token)
        removed = client.force_release(name, token)
    if as_json:
        print_json({"name": name, "token": token, "removed": removed})
    elif removed:
        click.echo(
            f"{name!r} was taken away from {count(removed, 'holder')}, who may still be "
            "working until told: only a resource that checks tokens is safe from that."
        )
    else:
        which = "Nobody held" if token is None else f"No holder with token {token} was found for"
        click.echo(f"{which} {name!r}: nothing was broken.")


def _someone_is_there() -> bool:
    return sys.stdin.isatty()


def _ask(shot: Snapshot, name: str, token: int | None) -> None:
    holders = [entry for entry in shot.holders if token in (None, entry.token)]
    if holders:
        click.echo(plain(ENTRY_HEADERS, entry_rows([shot], time.time())), err=True)
        question = f"Take {name!r} away from {count(len(holders), 'holder')}?"
        click.confirm(question, abort=True, err=True)
