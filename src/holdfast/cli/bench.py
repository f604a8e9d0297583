"""`holdfast bench`: every engine and every peer side by side, in one run; its subcommands."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..bench.compare.document import Document
from ..bench.compare.page import page
from ..bench.compare.run import CLIENTS, ENGINES, FULL, QUICK, compare, settings_for
from ..bench.compare.tables import markdown
from ..bench.compare.words import (
    behind,
    both_figures,
    ratio_text,
    summary,
    told_text,
    unable,
    verdict,
)
from .base import hear_the_library, say, wrong_usage
from .bench_agree import agree_
from .bench_floor import floor
from .progress import bar
from .table import Cell, show_table
from .text import duration

MOST_CLIENTS = 1_000
STYLES = {"behind": "bold red", "ahead": "green"}
OUTPUT = click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path)


def numbers(ctx: click.Context, param: click.Parameter, text: str) -> tuple[int, ...]:
    """Read numbers with commas in between."""
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1 or max(found) > MOST_CLIENTS:
        raise wrong_usage(
            click.BadParameter(f"{text!r} is no list of numbers up to 1,000, such as 1,10,100.")
        )
    return found


@click.group(invoke_without_command=True)
@click.option(
    "--engine",
    "engines",
    multiple=True,
    type=click.Choice(ENGINES),
    help="Only this engine; may be said several times.  [default: all]",
)
@click.option("--peers", is_flag=True, help='Others\' locks too: pip install "holdfast[peers]".')
@click.option(
    "--clients",
    callback=numbers,
    default=",".join(map(str, CLIENTS)),
    show_default=True,
    help="How many clients at once.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 86_400),
    metavar="S",
    help=f"How long the whole run may take, about.  [default: {FULL:g}, quick {QUICK:g}]",
)
@click.option("--quick", is_flag=True, help="Fewer rows, two peers of each engine: 90 seconds.")
@click.option("--json", "json_file", type=OUTPUT, metavar="FILE", help="Write it all; - prints.")
@click.option("--html", type=OUTPUT, metavar="FILE", help="Write a page with plots.")
@click.option("--markdown", "markdown_file", type=OUTPUT, metavar="FILE", help="Write tables.")
@click.pass_context
def bench(
    ctx: click.Context,
    engines: tuple[str, ...],
    peers: bool,
    clients: tuple[int, ...],
    seconds: float | None,
    quick: bool,
    json_file: Path | None,
    html: Path | None,
    markdown_file: Path | None,
) -> None:
    """Measure what locks cost, every engine beside its floor and its peers, as ratios of one run.

    Servers are started on this machine and stopped again. What is not installed, fails or is
    stopped meanwhile has a row that says so, and the run goes on.
    """
    if ctx.invoked_subcommand is not None:
        return
    on_output = [one for one in (json_file, html, markdown_file) if str(one) == "-"]
    if len(on_output) > 1:
        raise wrong_usage(click.UsageError("Only one of the reports can go to standard output."))
    hear_the_library()
    settings = settings_for(engines, peers=peers, clients=clients, seconds=seconds, quick=quick)
    with bar("bench") as progress:

        def tell(share: float, what: str, left: float) -> None:
            progress.show(share, f"{what} · {duration(left)} left" if what else "")

        document = compare(settings, tell)
    reports = ((json_file, json.dumps), (html, page), (markdown_file, markdown))
    for file, make in reports:
        _write(file, make(document) if file else "")
    if not on_output:
        show(document)


def _write(file: Path | None, text: str) -> None:
    if file is None:
        return
    if str(file) == "-":
        click.echo(text)
        return
    file.write_text(text, encoding="utf-8")
    say(f"Written: {file}")


def show(document: Document) -> None:
    """Print the ratios, where ours is behind, and what could not run."""
    figures = both_figures(document)
    rows = [
        [
            Cell(ratio["engine"], "bold"),
            Cell(ratio["label"]),
            Cell(ratio["figure"]),
            Cell(told_text(ratio)),
            Cell(ratio_text(ratio), STYLES.get(verdict(ratio), "") if ratio["stable"] else "dim"),
            *(Cell(one) for one in figures(ratio)),
        ]
        for ratio in document["ratios"]
    ]
    show_table(("ENGINE", "WHAT", "BY", "OURS ÷ THEIRS", "", "OURS", "THEIRS"), rows)
    for row in unable(document):
        say(f"{row['engine']}, {row['label']}, {row['contestant']}: {row['problem']}")
    for ratio in behind(document):
        say(f"{ratio['engine']}, {ratio['label']}, {ratio['figure']}: {ratio_text(ratio)}")
    say(summary(document))


bench.add_command(floor)
bench.add_command(agree_)
