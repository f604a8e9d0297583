"""`holdfast lab`: what locks are worth when things go wrong, shown on this machine."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import click

from ..errors import MissingDriver
from .base import Command, say
from .commands import Commands

COMMANDS = {
    "run": "lab_run:run",
    "matrix": "lab_matrix:matrix",
    "tell": "lab_tell:tell",
    "soak": "lab_soak:soak_",
    "page": "lab_page:page",
}
INTERRUPTED = 130

EPILOG = """\b
Examples:
  holdfast lab run --engine redis --fault pause --seconds 20
  holdfast lab matrix --html matrix.html
  holdfast lab tell paused-holder
"""


class Lab(Commands):
    """The commands of the lab, which bring servers and drivers."""

    table = COMMANDS

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command of that name; say what must be installed for it."""
        try:
            return super().get_command(ctx, name)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("holdfast"):
                raise
            say(
                MissingDriver(
                    f"holdfast lab needs {error.name}, which is not installed: "
                    'pip install "holdfast[testing]".'
                )
            )
            ctx.exit(69)


@click.group(cls=Lab, epilog=EPILOG)
def lab() -> None:
    """Put engines to the test: real servers, real processes, real faults, on this machine only."""


class LabCommand(Command):
    """A command that cleans up after itself, also on Ctrl-C."""

    def invoke(self, ctx: click.Context) -> Any:
        """See click."""
        try:
            with _leaving_once():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            say("Stopped. Everything that the lab had started was stopped, too.")
            ctx.exit(INTERRUPTED)


@contextmanager
def _leaving_once() -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM end the run, and no second one disturb the cleaning up."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {one: signal.signal(one, leave) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def seed_option(function: Any) -> Any:
    """Give a command --seed; without it a new one is drawn."""
    return click.option(
        "--seed",
        type=click.IntRange(0),
        default=lambda: random.SystemRandom().randrange(1_000_000),
        metavar="N",
        help="Decides which fault comes when: same seed, same faults.  [default: a new one]",
    )(function)


def engine_option(function: Any) -> Any:
    """Give a command --engine, as often as one likes."""
    return click.option(
        "--engine",
        "engines",
        multiple=True,
        metavar="ENGINE",
        help="Which engine; may be repeated.  [default: all that are installed here]",
    )(function)


def fault_option(function: Any) -> Any:
    """Give a command --fault, as often as one likes."""
    return click.option(
        "--fault", "faults", multiple=True, metavar="FAULT", help="Which fault; may be repeated."
    )(function)
