"""`holdfast run`: options and help."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import click

from ..base import NOT_EXECUTABLE, NOT_FOUND, Command, Where, complete_name, say, where_options

EPILOG = """\b
Exit codes:
  that of COMMAND, or 128 + N if signal N killed it
  64   wrong usage
  69   the engine cannot be reached
  75   the lock was not acquired in time
  76   the lock was lost, and COMMAND stopped
  126  COMMAND cannot be executed
  127  COMMAND was not found

\b
COMMAND finds in its environment:
  HOLDFAST_NAME, HOLDFAST_TOKEN, HOLDFAST_DOMAIN, HOLDFAST_MODE, HOLDFAST_LIMIT,
  HOLDFAST_URL, HOLDFAST_NAMESPACE

\b
Examples:
  holdfast run backup -- tar czf /backup/home.tgz /home
  holdfast run --timeout 0 report -- ./report.py     # skip it if another runs it
  holdfast run --limit 3 transcode -- ffmpeg -i in.mov out.mp4
"""


class RunCommand(Command):
    """Everything after NAME is the command's; options may also stand between NAME and `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        if "--" in args:
            end = args.index("--")
            before, command = args[:end], args[end + 1 :]
            words = self._words(before)
            if len(words) == 1:  # else the -- is the command's own, or comes before NAME
                name = before.pop(words[0])
                args = [*before, "--", name, *command]
        return super().parse_args(ctx, args)

    def _words(self, args: list[str]) -> list[int]:
        """Return where the words are that are neither options nor their values."""
        options = [param for param in self.params if isinstance(param, click.Option)]
        valued = {text for option in options if not option.is_flag for text in option.opts}
        found, place = [], 0
        while place < len(args):
            if not args[place].startswith("-"):
                found.append(place)
            place += 2 if args[place] in valued else 1
        return found


@click.command(
    cls=RunCommand,
    epilog=EPILOG,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.option(
    "--ttl",
    type=float,
    default=30.0,
    metavar="S",
    help="Seconds the lock outlives a lost machine; it is renewed every third of that.  "
    "[default: 30]",
)
@click.option(
    "--timeout",
    type=float,
    metavar="S",
    help="Seconds to wait for the lock; 0 = try once.  [default: for ever]",
)
@click.option(
    "--grace",
    type=float,
    metavar="S",
    help="Seconds between TERM and the end when the "
    "lock is being lost.  [default: a third of the TTL, at most 10]",
)
@click.option("--shared", is_flag=True, help="Share the lock with others that run with --shared.")
@click.option("--limit", type=int, metavar="N", help="Let N commands run at once, not only one.")
@click.option("--label", metavar="TEXT", help="How `holdfast ls` names you.  [default: host:pid]")
@click.option(
    "--metrics-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Add what was counted to this .prom file, for node-exporter's textfile collector.",
)
@where_options
@click.argument("name", shell_complete=complete_name)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND…")
def run(where: Where, name: str, command: tuple[str, ...], **options: Any) -> None:
    """Run COMMAND while holding the lock NAME.

    Waits for its turn, runs COMMAND (no shell is involved), and frees the lock when COMMAND has
    ended. Input, output and signals are COMMAND's. The lock is renewed as long as COMMAND runs; if
    that fails, COMMAND gets TERM, then KILL, before another can get the lock. COMMAND never
    outlives `holdfast run`, even if that is killed with -9.
    """
    if options["shared"] and options["limit"] is not None:
        raise click.UsageError("--shared and --limit exclude each other.")
    if not hasattr(os, "fork"):
        raise click.UsageError("holdfast run needs a POSIX system, such as Linux or macOS.")
    if options["metrics_file"] is not None:
        from .metrics_file import check_path

        check_path(options["metrics_file"])
    problem = _cannot_run(command[0])
    if problem:
        raise SystemExit(problem)
    from .front import run_front
    from .order import Order

    raise SystemExit(run_front(Order(where, name, command, **options)))


def _cannot_run(program: str) -> int:
    """Return the exit code for a command that cannot be started: better now than after a wait."""
    if shutil.which(program):
        return 0
    if os.path.exists(program) and os.sep in program:
        say(f"The command {program!r} cannot be executed: it is no program, or not executable.")
        return NOT_EXECUTABLE
    say(f"The command {program!r} was not found.")
    return NOT_FOUND
