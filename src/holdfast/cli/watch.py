"""`holdfast watch`: holders, waiters and cycles of waits, live."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from .. import Client
from ..doctor.cycles import Wait, find_cycles
from ..errors import EngineUnavailable, OutcomeUnknown
from ..model import Snapshot
from .base import Command, Where, complete_name, say, where_options
from .table import console, drawn, on_terminal, plain
from .text import count, safe
from .view import ENTRY_HEADERS, entry_rows, print_json, snapshot_json

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, slots=True)
class Frame:
    """What was seen at one instant, or why nothing was."""

    at: float
    shots: Sequence[Snapshot] = ()
    cycles: Sequence[Sequence[Wait]] = ()
    trouble: str = ""


@click.command(cls=Command)
@click.argument("prefix", default="", shell_complete=complete_name)
@click.option("--once", is_flag=True, help="Look once, and leave.")
@click.option(
    "--interval",
    type=click.FloatRange(0.05, 3600),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds between looks.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per look and line.")
@where_options
def watch(where: Where, prefix: str, once: bool, interval: float, as_json: bool) -> None:
    """Watch the locks whose name starts with PREFIX (default: all) until Ctrl-C.

    A cycle of waits is shown as such: A holds x and waits for y, while B holds y and waits for x.
    Who is who is told by label, which is host:pid unless somebody chose another; threads of one
    process that wait for each other's locks may look like a cycle and not be one.
    """
    with where.connect() as client:
        title = f"{client.namespace} on {client.engine.location}"
        try:
            if once:
                _print(_look(client, prefix), as_json)
            elif as_json or not on_terminal():
                for number, frame in enumerate(_frames(client, prefix, interval)):
                    if number and not as_json:
                        click.echo()
                    _print(frame, as_json)
            else:
                _live(_frames(client, prefix, interval), title)
        except KeyboardInterrupt:
            pass  # the way to leave


def _look(client: Client, prefix: str) -> Frame:
    shots = client.locks(prefix)
    return Frame(time.time(), shots, find_cycles(shots))


def _frames(client: Client, prefix: str, interval: float) -> Iterator[Frame]:
    """Yield what is seen, for ever; an engine that does not answer may come back."""
    while True:
        try:
            yield _look(client, prefix)
        except (EngineUnavailable, OutcomeUnknown) as error:
            yield Frame(time.time(), trouble=str(error))
        time.sleep(interval)


def frame_json(frame: Frame) -> dict[str, Any]:
    """Return a look as JSON."""
    return {
        "at": round(frame.at, 3),
        "error": frame.trouble or None,
        "locks": [snapshot_json(shot, frame.at) for shot in frame.shots],
        "cycles": [[wait._asdict() for wait in cycle] for cycle in frame.cycles],
    }


def cycle_sentence(cycle: Sequence[Wait]) -> str:
    """Return a cycle of waits as a sentence."""
    parts = (f"{wait.label} waits for {wait.name!r} of {wait.blocker}" for wait in cycle)
    return f"Cycle of waits: {', '.join(parts)}."


def _heading(frame: Frame) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(frame.at))
    holders = sum(len(shot.holders) for shot in frame.shots)
    waiters = sum(len(shot.waiters) for shot in frame.shots)
    return (
        f"{clock}  {count(len(frame.shots), 'lock')}, {count(holders, 'holder')}, "
        f"{count(waiters, 'waiter')}"
    )


def _print(frame: Frame, as_json: bool) -> None:
    if as_json:
        print_json(frame_json(frame), lines=True)
        return
    if frame.trouble:
        say(frame.trouble)
        return
    click.echo(_heading(frame))
    if frame.shots:
        rows = entry_rows(frame.shots, frame.at)
        if on_terminal():
            console().print(drawn(ENTRY_HEADERS, rows))
        else:
            click.echo(plain(ENTRY_HEADERS, rows))
    for cycle in frame.cycles:
        click.echo(safe(cycle_sentence(cycle)))


def _live(frames: Iterator[Frame], title: str) -> None:
    from rich.live import Live

    with Live(console=console(), screen=True, auto_refresh=False) as live:
        for frame in frames:
            live.update(_drawing(frame, title), refresh=True)


def _drawing(frame: Frame, title: str) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(safe(f"{_heading(frame)}  ·  {title}"), "bold")]
    parts += [Text(safe(cycle_sentence(cycle)), "bold red") for cycle in frame.cycles]
    if frame.trouble:
        parts.append(Text(safe(frame.trouble), "red"))
    elif frame.shots:
        parts.append(drawn(ENTRY_HEADERS, entry_rows(frame.shots, frame.at)))
    else:
        parts.append(Text("\nNo lock is in use.", "dim"))
    return Group(*parts, Text("Ctrl-C leaves.", "dim"))
