"""The report as Markdown: ratios first, then every figure, engine by engine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from .document import Document, Ratio, Row
from .words import (
    METHOD,
    behind,
    blocks,
    both_figures,
    circumstances,
    figure_text,
    ratio_text,
    summary,
    told_text,
    unable,
    verdict,
)

# The figures of each scenario that the tables show; the others are in the JSON document.
COLUMNS: dict[str, tuple[str, ...]] = {
    "pair": (
        *("acquire p50", "acquire p90", "acquire p99", "acquire p99.9"),
        *("release p50", "release p90", "release p99", "release p99.9", "pairs/s"),
    ),
    "own keys": ("pairs/s", "acquire p50", "acquire p99", "release p50", "release p99"),
    "hot key": (
        *("hand-overs/s", "hand-over p50", "hand-over p99", "pairs/s"),
        *("least turns", "most turns", "fairness", "acquire p99", "contended/free", "at once"),
    ),
    "mix": ("pairs/s", "read p50", "read p99", "write p50", "write p99"),
    "open loop": ("response p50", "response p90", "response p99", "response p99.9", "unserved"),
    "request": ("share", "pair p50", "pair p99"),
    "round trips": ("requests/pair",),
    "renewal": ("client CPU", "server CPU", "client share"),
    "holder killed": ("recovery",),
    "nodes": ("acquire p50", "acquire p99", "release p50", "pairs/s"),
    "node killed": ("stall",),
    "claimed set-up": ("pairs/s", "acquire p50", "acquire p99", "acquire p99.9"),
}


def shown_columns(rows: Sequence[Row]) -> list[str]:
    """Return the figures that at least one of the rows has."""
    wanted = COLUMNS.get(rows[0]["scenario"], ())
    return [name for name in wanted if any(row["figures"].get(name) is not None for row in rows)]


def markdown(document: Document) -> str:
    """Return the whole report."""
    parts = ["# What locks cost", summary(document), *circumstances(document)]
    parts += ["## Ratios", _ratio_table(document)]
    if lines := [_line(ratio) for ratio in behind(document)]:
        parts += ["## Where ours is behind a peer", "\n".join(lines)]
    parts.append("## Figures")
    for engine, some in groupby(blocks(document), key=lambda block: block[0]):
        parts.append(f"### {engine}")
        for _, label, rows, _ in some:
            parts += [f"**{label}** ({rows[0]['loop']} loop)", _figure_table(rows)]
    if missing := unable(document):
        lines = [f"- {_name(row)}: {_cell(row['problem'])}" for row in missing]
        parts += ["## What could not run", "\n".join(lines)]
    parts += ["## How it was measured", *METHOD]
    return "\n\n".join(parts) + "\n"


def _line(ratio: Ratio) -> str:
    return f"- {ratio['engine']}, {ratio['label']}, {ratio['figure']}: {_cell(ratio_text(ratio))}"


def _name(row: Row) -> str:
    return f"{row['engine']}, {row['label']}, {_cell(row['contestant'])}"


def _ratio_table(document: Document) -> str:
    lines = ["| engine | what | by | ours ÷ theirs | | ours | theirs |"]
    lines.append("|---|---|---|---:|---|---:|---:|")
    figures = both_figures(document)
    for ratio in document["ratios"]:
        words = ratio_text(ratio)
        if verdict(ratio) == "behind":
            words = f"**{words}**"
        value = told_text(ratio)
        cells = (ratio["engine"], ratio["label"], ratio["figure"], value, words)
        lines.append(f"| {' | '.join(map(_cell, (*cells, *figures(ratio))))} |")
    return "\n".join(lines)


def _figure_table(rows: Sequence[Row]) -> str:
    names = shown_columns(rows)
    lines = [
        f"| {' | '.join(('contestant', *names))} | |",
        f"|---|{'---:|' * len(names)}---|",
    ]
    for row in rows:
        cells = [figure_text(name, row["figures"].get(name)) for name in names]
        note = row["problem"] or ", ".join(filter(None, (row["lacks"], row["note"])))
        lines.append(f"| {' | '.join(map(_cell, (row['contestant'], *cells, note)))} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return text that cannot end a cell; what others say may contain anything."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
