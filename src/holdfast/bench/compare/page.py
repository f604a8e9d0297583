"""The report as one HTML file: everything inside, no network, no script, light and dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from .document import Document, Ratio, Row
from .load import TASKS
from .plots import STYLE, classes, distributions, legend, lines, rows_of
from .tables import shown_columns
from .words import (
    METHOD,
    Both,
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

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What locks cost</title>
<style>
:root {{ color-scheme: light dark; --ink: #1c1c1e; --dim: #6a6a70; --line: #8883; --paper: #fff;
  --soft: #8881; --c-ours: #0b63ce; --c-floor: #777; --bad: #b3261e; --good: #1b6e3c }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #eee; --dim: #a0a0a8; --paper: #16171a; --c-ours: #6cb0ff; --c-floor: #aaa;
    --bad: #ff8a80; --good: #7ddba0 }}
}}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1180px; margin: 1.5rem auto; padding: 0 1rem }}
h1 {{ font-size: 1.7rem }} h2 {{ margin-top: 2.2rem }} h3 {{ margin: 1.2rem 0 .3rem }}
.small, footer {{ color: var(--dim); font-size: .88rem }}
.scroll {{ overflow-x: auto }}
table {{ border-collapse: collapse; font-size: .88rem; margin: .4rem 0 1rem }}
th, td {{ padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top }}
td.n, th.n {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }}
tr.ours td {{ font-weight: 600 }}
.behind {{ color: var(--bad); font-weight: 600 }} .ahead {{ color: var(--good) }}
.unstable {{ opacity: .65 }}
.plots {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr));
  gap: 1rem }}
figure {{ margin: 0; padding: .6rem; background: var(--soft); border-radius: .5rem }}
figcaption {{ font-weight: 600; margin-bottom: .3rem }}
details > summary {{ cursor: pointer; padding: .3rem 0 }}
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def page(document: Document) -> str:
    """Return the whole page."""
    return _PAGE.format(style=STYLE, body="\n".join(_body(document)))


def _body(document: Document) -> Iterator[str]:
    yield "<h1>What locks cost</h1>"
    yield f"<p>{escape(summary(document))}</p>"
    yield _list(circumstances(document), "small")
    yield "<h2>Ratios</h2>"
    yield _behind(document)
    figures = both_figures(document)
    for engine in _engines(document):
        ratios = [ratio for ratio in document["ratios"] if ratio["engine"] == engine]
        yield f"<details open><summary><b>{escape(engine)}</b>: {_counts(ratios)}</summary>"
        yield _ratio_table(ratios, figures)
        yield "</details>"
    yield "<h2>Plots</h2>"
    for engine in _engines(document):
        yield from _plots(document, engine)
    yield "<h2>All figures</h2>"
    for engine, label, rows, _ in blocks(document):
        yield f"<details><summary>{escape(engine)}: {escape(label)}</summary>"
        yield f'<p class="small">{escape(rows[0]["loop"])} loop, {escape(rows[0]["style"])}</p>'
        yield _figure_table(rows)
        yield "</details>"
    if missing := unable(document):
        yield "<h2>What could not run</h2>"
        yield _list(
            [f"{row['engine']}, {row['label']}, {row['contestant']}: {row['problem']}"
             for row in missing]
        )  # fmt: skip
    yield "<h2>How it was measured</h2>"
    yield _list(METHOD)


def _engines(document: Document) -> list[str]:
    return list(dict.fromkeys(row["engine"] for row in document["rows"]))


def _counts(ratios: Sequence[Ratio]) -> str:
    worst = sum(verdict(ratio) == "behind" for ratio in ratios)
    best = sum(verdict(ratio) == "ahead" for ratio in ratios)
    return f"ahead of a peer on {best}, behind on {worst}"


def _behind(document: Document) -> str:
    found = behind(document)
    if not found:
        return "<p>Ours is behind no peer on any row of this run.</p>"
    items = "".join(
        f"<li>{escape(ratio['engine'])}, {escape(ratio['label'])}, {escape(ratio['figure'])}: "
        f'<span class="behind">{escape(ratio_text(ratio))}</span></li>'
        for ratio in found
    )
    return f"<p>Where ours is behind a peer:</p><ul>{items}</ul>"


def _ratio_table(ratios: Sequence[Ratio], figures: Callable[[Ratio], Both]) -> str:
    rows = [
        f'<tr class="{"" if ratio["stable"] else "unstable"}">'
        f'<td class="n">{escape(told_text(ratio))}</td>'
        f'<td class="{verdict(ratio)}">{escape(ratio_text(ratio))}</td>'
        f"<td>{escape(ratio['label'])}</td><td>{escape(ratio['figure'])}</td>"
        + "".join(f'<td class="n">{escape(one)}</td>' for one in figures(ratio))
        + "</tr>"
        for ratio in ratios
    ]
    head = (
        '<tr><th class="n">ours ÷ theirs</th><th></th><th>what</th><th>by</th>'
        '<th class="n">ours</th><th class="n">theirs</th></tr>'
    )
    return f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>'


def _figure_table(rows: Sequence[Row]) -> str:
    names = shown_columns(rows)
    head = "".join(f'<th class="n">{escape(name)}</th>' for name in names)
    lines_ = [f"<tr><th>contestant</th>{head}<th></th></tr>"]
    for row in rows:
        cells = "".join(
            f'<td class="n">{escape(figure_text(name, row["figures"].get(name)))}</td>'
            for name in names
        )
        note = row["problem"] or ", ".join(filter(None, (row["lacks"], row["note"])))
        lines_.append(
            f'<tr class="{escape(row["role"])}"><td>{escape(row["contestant"])}</td>{cells}'
            f'<td class="small">{escape(note)}</td></tr>'
        )
    return f'<div class="scroll"><table>{"".join(lines_)}</table></div>'


def _plots(document: Document, engine: str) -> Iterator[str]:
    pair = rows_of(document, engine, "pair")
    own = [row for row in rows_of(document, engine, "pair", "own keys") if row["style"] != TASKS]
    own = [row for row in own if row["style"] != "processes"]
    hot = rows_of(document, engine, "hot key")
    everyone = rows_of(document, engine, "pair", "own keys", "hot key")
    colours = classes(everyone)
    plots = {
        "Acquiring, uncontended": distributions(pair, colours),
        "Pairs/s by threads, a key each": lines(own, "pairs/s", colours, "clients"),
        "Hand-overs/s by waiters, one key": lines(hot, "hand-overs/s", colours, "waiters"),
    }
    if not any(plots.values()):
        return
    yield f"<h3>{escape(engine)}</h3>"
    yield legend(colours, everyone)
    yield '<div class="plots">'
    for title, plot in plots.items():
        if plot:
            yield f"<figure><figcaption>{escape(title)}</figcaption>{plot}</figure>"
    yield "</div>"


def _list(texts: Sequence[str], kind: str = "") -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<ul class="{kind}">{items}</ul>'
