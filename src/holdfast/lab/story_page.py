"""Tellings as an HTML page: the picture, the sentences, the hazard, and both outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from .html import page, tag, wrap
from .picture import LEGEND, draw
from .stories import Telling


def story_page(tellings: Sequence[Telling]) -> str:
    """Return the whole page."""
    body = [tag("h1", "What can go wrong with a lock"), tag("p", LEGEND, class_="dim")]
    for telling in tellings:
        body.extend(_section(telling))
    return page("holdfast lab: stories", "\n".join(body))


def _section(telling: Telling) -> list[str]:
    story = telling.story
    rows = (
        wrap("tr", tag("td", f"{line.at:.2f} s") + tag("td", line.text)) for line in telling.lines
    )
    hazard = telling.hazard_sentence
    return [
        tag("h2", story.title, id=story.name),
        draw(telling.chronicle),
        wrap("table", "\n".join(rows)),
        tag("p", hazard),
        wrap("p", tag("b", "Without a guard: ", class_="broken") + telling.contrast.without),
        wrap("p", tag("b", "With a guard: ", class_="held") + telling.contrast.with_guard),
        tag("p", story.moral),
    ]
