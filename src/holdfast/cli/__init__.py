"""The command line: one file per command, this one only finds them."""

from __future__ import annotations

import click

from .. import __version__
from .base import Where
from .commands import Commands

# Imported when called: `holdfast run` must not wait for what draws tables.
COMMANDS = {
    "run": "run.command:run",
    "ls": "ls:ls",
    "show": "show:show",
    "break": "breaking:break_",
    "watch": "watch:watch",
    "doctor": "doctor:doctor",
    "advise": "advise:advise",
    "alerts": "alerts:alerts",
    "bench": "bench:bench",
    "lab": "lab:lab",
    "completion": "completion:completion",
}


class Main(Commands):
    """All commands."""

    table = COMMANDS


EPILOG = """\b
Try it, with nothing but this machine:
  holdfast run nightly -- sleep 60 &
  holdfast run --timeout 0 nightly -- echo mine     # exit code 75: somebody has it
  holdfast ls
"""


@click.group(cls=Main, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--url",
    envvar="HOLDFAST_URL",
    show_envvar=True,
    metavar="URL",
    help="Where the locks are: sqlite:///path/to/locks.db, redis://host, redlock://h1,h2,h3 or "
    "another engine; a file of yours if not said.",
)
@click.option(
    "--namespace",
    envvar="HOLDFAST_NAMESPACE",
    show_envvar=True,
    metavar="TEXT",
    help="Locks of different namespaces have nothing to do with each other.  [default: holdfast]",
)
@click.version_option(__version__, prog_name="holdfast")
@click.pass_context
def main(ctx: click.Context, url: str | None, namespace: str | None) -> None:
    """Locks between processes and machines that stay safe when things go wrong.

    `holdfast run NAME -- COMMAND` runs a command while holding the lock NAME; the other commands
    show who holds what, and repair. Every command explains itself with --help.
    """
    ctx.obj = Where(url, namespace)
