"""Reports of the comparison: the schema, Markdown, and the page."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

from holdfast.bench.compare.document import faults
from holdfast.bench.compare.page import page
from holdfast.bench.compare.tables import markdown
from holdfast.bench.compare.words import behind, figure_text, ratio_text
from tests.bench.documents import document, ratio, row

BAD = "cannot run: failed: Error: <script>alert(1)</script> | x"
RUN = document(
    [
        *(row(), row(contestant="two bare scripts", role="floor", lacks="no waiting")),
        *(row(contestant="kazoo Lock", role="peer"), row(contestant="gone", problem=BAD, curve=[])),
        *(
            row(
                scenario="hot key",
                label=f"one key, {count} clients",
                clients=count,
                figures={"hand-overs/s": 100.0 * count, "fairness": None},
                style="processes",
            )
            for count in (2, 10)
        ),
        row(scenario="own keys", label="a key each, 10 threads", clients=10),
    ],
    [
        ratio(1.2),
        ratio(0.5, contestant="redis-py Lock", stable=False),
        ratio(1.07, contestant="two bare scripts", role="floor"),
        ratio(1.0, contestant="tooz"),
    ],
)


def test_a_document_keeps_the_schema() -> None:
    """What is written can be read, and means the same."""
    assert faults(json.loads(json.dumps(RUN))) == []


def test_faults_of_a_document_are_named() -> None:
    """What is missing, unknown or of another type is said, with its place."""
    wrong = json.loads(json.dumps(RUN))
    del wrong["machine"]["cpu"]
    wrong["rows"][0]["clients"] = "many"
    wrong["rows"][1]["figures"]["pairs/s"] = "fast"
    wrong["ratios"][0]["colour"] = "red"
    found = sorted(faults(wrong))
    assert [one.split(" ")[0] for one in found] == [
        "document.machine",
        "document.ratios[0]",
        "document.rows[0].clients",
        "document.rows[1].figures.pairs/s",
    ]
    assert faults([]) == ["document is [], not an object"]
    assert "reads 1" in faults(dict(RUN) | {"version": 2})[0]


def test_behind_is_said_plainly() -> None:
    """The worst comes first; the floor is nobody one could be behind."""
    assert [ratio_text(one) for one in behind(RUN)] == ["behind kazoo Lock: 1.20×"]
    texts = [ratio_text(one) for one in RUN["ratios"]]
    assert texts[1:] == [
        "ahead of redis-py Lock: 2.00× (unstable)",
        "1.07× the floor (two bare scripts)",
        "level with tooz",
    ]
    for report in (markdown(RUN), page(RUN)):
        assert "behind kazoo Lock: 1.20×" in report
        assert "Where ours is behind a peer" in report


def test_figures_have_units() -> None:
    """Times in the unit that suits them, rates with commas, a dash for what is unknown."""
    assert figure_text("acquire p50", 12.34) == "12.3 µs"
    assert figure_text("acquire p99", 2_500.0) == "2.5 ms"
    assert figure_text("recovery", 2_000.0) == "2 s"
    assert figure_text("pairs/s", 12_345.6) == "12,346/s"
    assert figure_text("fairness", None) == "–"


def test_markdown_has_ratios_first_and_every_row() -> None:
    """Tables are tables, whatever others say in them."""
    text = markdown(RUN)
    assert text.index("## Ratios") < text.index("## Figures")
    assert "&lt;script>" in text
    assert "\\| x" in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = [re.sub(r"\\\|", "", line).count("|") for line in table.splitlines()]
        assert len(set(lines)) == 1, table


def test_the_page_needs_nothing_from_elsewhere() -> None:
    """No script, no link, no font: one file, in light and in dark, on a phone."""
    text = page(RUN)
    assert "<script" not in text
    for word in ("src=", "href=", "@import", "url("):
        assert word not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert text.index("Ratios") < text.index("Plots") < text.index("All figures")


def test_plots_are_drawn_and_well_formed() -> None:
    """A distribution, throughput by clients and hand-overs by waiters, each as SVG."""
    drawn = re.findall(r"<svg.*?</svg>", page(RUN), re.DOTALL)
    assert len(drawn) == 3
    labels = [ElementTree.fromstring(one).get("aria-label") for one in drawn]
    assert labels == [
        "How long acquiring takes, by contestant",
        "pairs/s by clients",
        "hand-overs/s by waiters",
    ]


def test_a_run_in_which_nothing_ran_has_a_report() -> None:
    """All rows say why; there is nothing to draw."""
    nothing = document([row(problem=BAD, figures={}, curve=[], rounds=0)], [])
    assert "<svg" not in page(nothing)
    assert "behind no peer" in page(nothing)
    assert "What could not run" in markdown(nothing)
