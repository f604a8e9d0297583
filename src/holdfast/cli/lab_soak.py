"""`holdfast lab soak`: random faults for as long as one likes, and a report of it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from ..lab.experiment import Progress
from ..lab.network import isolate
from ..lab.soak import RUN, Total, report_text, soak
from .base import FOUND_SOMETHING, say
from .lab import LabCommand, engine_option, seed_option
from .lab_run import choose_engines
from .progress import bar
from .text import count


@click.command("soak", cls=LabCommand)
@engine_option
@click.option(
    "--minutes",
    type=click.FloatRange(0, 100_000),
    default=30.0,
    show_default=True,
    metavar="M",
    help="How long to go on; the run that is under way then is finished.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3600),
    default=RUN,
    show_default=True,
    metavar="S",
    help="How long the faults of one run go on.",
)
@seed_option
@click.option(
    "--report",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write what was done and found, as Markdown.",
)
def soak_(
    engines: tuple[str, ...], minutes: float, seconds: float, seed: int, report: Path | None
) -> None:
    """Run the lab again and again, engines in turn, each time with another swarm of faults.

    These are faults under which the engine promises exclusion: nothing may break. The exit code is
    1 if something did; its diaries are kept.
    """
    say(f"seed {seed}")
    network = isolate()
    chosen = choose_engines(engines)
    totals = {engine: Total() for engine in chosen}
    for found in soak(chosen, minutes, seed, _progress, seconds):
        totals[found.engine].add(found)
        faults, leases = found.counted.total(), len(found.chronicle.acquired)
        click.echo(
            f"{found.engine}, seed {found.seed}: {found.outcome}, {count(leases, 'lease')}, "
            f"{count(faults, 'fault')}"
        )
        if found.broken:
            say(f"A promise was broken. Diaries and server logs: {found.folder}")
            say(f"The same faults again: {found.replay}")
    told = {engine: total for engine, total in totals.items() if total.runs}
    text = report_text(told, network)
    click.echo(f"\n{text}")
    if report is not None:
        report.write_text(text, encoding="utf-8")
    if any(total.broken for total in totals.values()):
        raise SystemExit(FOUND_SOMETHING)


def _progress(engine: str, seed: int) -> Progress:
    """Show a bar of its own for each run; it ends with the run."""
    stack = ExitStack()
    shown = stack.enter_context(bar(f"{engine} {seed}"))

    def show(share: float, what: str) -> None:
        shown.show(share, what)
        if share >= 0.97:
            stack.close()

    return show
