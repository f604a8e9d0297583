"""The command line: one file per command, this one only finds them."""

from __future__ import annotations

import importlib

import click

from .. import __version__
from .base import Where, wrong_usage

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


class Commands(click.Group):
    """The commands, in the order in which one meets them; wrong usage ends with 64."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command of that name."""
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise wrong_usage(error) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See click."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise wrong_usage(error) from None


EPILOG = """\b
Try it, with nothing but this machine:
  holdfast run nightly -- sleep 60 &
  holdfast run --timeout 0 nightly -- echo mine     # exit code 75: somebody has it
  holdfast ls
"""


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
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
