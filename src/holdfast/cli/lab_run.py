"""`holdfast lab run`: some faults, one engine after the other, a verdict for each promise."""

from __future__ import annotations

import json

import click

from ..lab.engines import present_engines
from ..lab.experiment import Impossible, Setup, conduct
from ..lab.nemeses import NEMESES, find
from ..lab.network import PRIVATE, isolate
from ..lab.report import Report
from ..lab.verdict import BROKEN, DOCUMENTED, HELD, PROMISES, Verdict
from .base import FOUND_SOMETHING, say
from .lab import LabCommand, engine_option, fault_option, seed_option
from .progress import bar
from .table import Cell, show_table
from .text import count

STYLES = {HELD: "green", DOCUMENTED: "yellow", BROKEN: "bold red"}
SHOWN = 3  # violations of each promise


def _epilog() -> str:
    width = max(map(len, NEMESES))
    lines = "\n".join(f"  {name:<{width}}  {one.says}" for name, one in NEMESES.items())
    return f"\b\nFaults:\n{lines}"


@click.command(cls=LabCommand, epilog=_epilog())
@engine_option
@fault_option
@click.option(
    "--seconds",
    type=click.FloatRange(1, 86_400),
    default=20.0,
    show_default=True,
    metavar="S",
    help="How long the faults go on.",
)
@click.option("--ttl", type=float, metavar="S", help="TTL of the leases.  [default: a short one]")
@seed_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def run(
    engines: tuple[str, ...],
    faults: tuple[str, ...],
    seconds: float,
    ttl: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Start servers and clients, do faults to them, and judge what came of it.

    Worker processes (threads, tasks, and `holdfast run`) take locks and write to a resource. All of
    them keep diaries; when all faults are healed, the diaries are judged. Without --fault these are
    the faults under which the engine promises exclusion (server-clock and failover must be named:
    servers are prepared for them). The exit code is 1 if a promise was broken; then the diaries are
    kept, and with the seed the same faults can be done again.
    """
    find(faults)
    say(f"seed {seed}")
    network = isolate()
    reports = [
        report
        for engine in choose_engines(engines)
        if (report := _run_one(engine, faults, seconds, ttl, seed, network, as_json)) is not None
    ]
    if as_json:
        click.echo(json.dumps([report.document() for report in reports], indent=2))
    if any(report.broken for report in reports):
        raise SystemExit(FOUND_SOMETHING)


def choose_engines(wanted: tuple[str, ...]) -> list[str]:
    """Return the engines that were named, or all that are installed; say which are not."""
    if wanted:
        return list(wanted)
    found = present_engines()
    for name, missing in found.items():
        if missing:
            say(f"{name} is left out: {missing}")
    return [name for name, missing in found.items() if not missing]


def _run_one(
    engine: str,
    faults: tuple[str, ...],
    seconds: float,
    ttl: float | None,
    seed: int,
    network: str,
    as_json: bool,
) -> Report | None:
    try:
        setup = Setup(engine, faults, seed, seconds, ttl)
        with bar(engine, as_json) as progress:
            report = conduct(setup, progress.show)
    except Impossible as error:
        say(f"{engine}: cannot be done here: {error}.")
        return None
    if not as_json:
        show_report(report, network)
    return report


def show_report(report: Report, network: str) -> None:
    """Print what one run came to."""
    chronicle = report.chronicle
    crew = ", ".join(report.crew)
    kind = "a private network" if network == PRIVATE else "the loopback interface"
    click.echo(f"\n{report.engine}: TTL {report.ttl:g} s, workers {crew}, on {kind}")
    struck = ", ".join(f"{name} {number}" for name, number in report.counted.most_common())
    leases = count(len(chronicle.acquired), "lease")
    click.echo(f"{leases}; {count(report.counted.total(), 'fault')}: {struck or 'none'}\n")
    rows = [_row(verdict) for verdict in report.verdicts]
    show_table(("PROMISE", "VERDICT", "WHAT"), rows)
    for verdict in report.verdicts:
        if verdict.outcome == BROKEN:
            for violation in verdict.violations[:SHOWN]:
                say(f"{verdict.promise} at {violation.at:.3f} s: {violation.sentence}")
    if report.broken:
        say(f"A promise was broken. Diaries and server logs: {report.folder}")
        say(f"The same faults again: {report.replay}")


def _row(verdict: Verdict) -> list[Cell]:
    promise = PROMISES[verdict.promise]
    outcome = verdict.outcome
    word = outcome if verdict.promised or verdict.violations else f"{outcome}, not promised"
    seen = f"{count(len(verdict.violations), 'violation')}; " if verdict.violations else ""
    note = f" ({seen}{verdict.note})".replace("; )", ")") if seen or verdict.note else ""
    return [Cell(promise.name), Cell(word, STYLES[outcome]), Cell(f"{promise.says}{note}")]
