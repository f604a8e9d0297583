"""`holdfast lab tell`: a story of what can go wrong, played for real and drawn."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click

from ..lab.experiment import Impossible
from ..lab.network import isolate
from ..lab.stories import STORIES, Telling
from ..lab.stories import tell as play
from ..lab.story_page import story_page
from ..lab.timeline import draw
from .base import say
from .lab import LabCommand
from .table import Cell, on_terminal, show_table

EVERYTHING = "all"
WIDEST = 120


@click.command(cls=LabCommand)
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]…")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write a page with the picture of each story.",
)
def tell(scenarios: tuple[str, ...], as_json: bool, html: Path | None) -> None:
    """Play what can go wrong with a lock: real servers, real processes, without and with a guard.

    Without SCENARIO the stories are listed; `all` tells all of them. Each takes a few seconds and
    says how long damage could be done: the hazard window.
    """
    if not scenarios:
        rows = [[Cell(name, "bold"), Cell(story.title)] for name, story in STORIES.items()]
        show_table(("SCENARIO", "WHAT HAPPENS"), rows)
        return
    names = tuple(STORIES) if scenarios == (EVERYTHING,) else scenarios
    unknown = [name for name in names if name not in STORIES]
    if unknown:
        raise click.UsageError(
            f"There is no story called {', '.join(unknown)}; `holdfast lab tell` lists them."
        )
    isolate()
    tellings = [told for name in names if (told := _tell(name, as_json)) is not None]
    if html is not None:
        html.write_text(story_page(tellings), encoding="utf-8")
        say(f"The page is {html}.")
    if as_json:
        click.echo(json.dumps([telling.document() for telling in tellings], indent=2))


def _tell(name: str, silent: bool) -> Telling | None:
    story = STORIES[name]

    def narrate(at: float, text: str) -> None:
        if not silent:
            click.echo(f"  {at:5.2f} s  {text}")

    if not silent:
        click.echo(f"\n{_bold(story.title)}\n")
    try:
        telling = play(story, narrate)
    except Impossible as error:
        say(f"{name}: cannot be done here: {error}.")
        return None
    if not silent:
        width = min(WIDEST, shutil.get_terminal_size((100, 24)).columns)
        click.echo("\n" + "\n".join(draw(telling, width)))
        click.echo(f"\n{telling.hazard_sentence}")
        click.echo(f"Without a guard: {telling.contrast.without}")
        click.echo(f"With a guard:    {telling.contrast.with_guard}")
        click.echo(f"\n{story.moral}")
    return telling


def _bold(text: str) -> str:
    return click.style(text, bold=True) if on_terminal() else text
