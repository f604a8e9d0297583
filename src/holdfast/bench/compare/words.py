"""Figures and ratios as people read them; one place, so that all reports say the same."""

from __future__ import annotations

from collections.abc import Callable

from ..contestant import FLOOR
from .document import Document, Ratio, Row
from .figures import FIGURES
from .ours import Ours
from .stability import FAR

LEVEL = 1.005  # what rounds to 1.00× is level
AHEAD, BEHIND, EVEN, BESIDE_FLOOR = "ahead", "behind", "level", "floor"


def figure_text(name: str, value: float | None) -> str:
    """Return a figure with its unit; a dash for what is not known."""
    if value is None:
        return "–"
    unit = FIGURES[name].unit
    if unit == "µs":
        return duration_text(value)
    if unit == "ms":
        return duration_text(value * 1e3)
    space = "" if unit in ("×", "", "/s") else " "
    return f"{short(value)}{space}{unit}"


def duration_text(micros: float) -> str:
    """Return a time in the unit that suits it."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if micros >= size:
            return f"{short(micros / size)} {unit}"
    return f"{short(micros)} µs"


def short(value: float) -> str:
    """Return a number with three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def verdict(ratio: Ratio) -> str:
    """Say where ours stands: ahead of a peer, behind it, or level; the floor is nobody's rival."""
    if ratio["role"] == FLOOR:
        return BESIDE_FLOOR
    if ratio["value"] >= LEVEL:
        return BEHIND
    return AHEAD if ratio["value"] <= 1 / LEVEL else EVEN


def ratio_text(ratio: Ratio) -> str:
    """Return the judgement in words: `behind kazoo Lock: 1.2×`."""
    value, other = ratio["value"], ratio["contestant"]
    if ratio["few"] and verdict(ratio) != EVEN:
        way = "behind" if verdict(ratio) == BEHIND else "ahead of"
        return f"{way} {other}, by too few hand-overs for a ratio"
    said = {
        BESIDE_FLOOR: f"{_times(value)}× the floor ({other})",
        BEHIND: f"behind {other}: {_times(value)}×",
        AHEAD: f"ahead of {other}: {_times(1 / value) if value else '∞'}×",
        EVEN: f"level with {other}",
    }[verdict(ratio)]
    return said if ratio["stable"] else f"{said} (unstable)"


def _times(value: float) -> str:
    return f"{value:.2f}" if value <= FAR else f"more than {FAR:g}"


def told_text(ratio: Ratio) -> str:
    """Return a ratio as a number, if it is one."""
    return "few" if ratio["few"] else value_text(ratio["value"])


def value_text(value: float) -> str:
    """Return a ratio as a number; how far is far is told by the two figures, not by it."""
    if value > FAR:
        return f"> {FAR:g}"
    return f"< {1 / FAR:.2f}" if value < 1 / FAR else f"{value:.2f}"


Both = tuple[str, str]


def both_figures(document: Document) -> Callable[[Ratio], Both]:
    """Return a function that gives both figures of a ratio, ours first, as people read them."""
    found = {
        (row["engine"], row["label"], row["contestant"]): row["figures"] for row in document["rows"]
    }

    def look_up(ratio: Ratio) -> Both:
        where = (ratio["engine"], ratio["label"])
        ours, theirs = (found.get((*where, who), {}) for who in (Ours.name, ratio["contestant"]))
        name = ratio["figure"]
        return figure_text(name, ours.get(name)), figure_text(name, theirs.get(name))

    return look_up


def behind(document: Document) -> list[Ratio]:
    """Return where ours is behind a peer, the worst first."""
    found = [ratio for ratio in document["ratios"] if verdict(ratio) == BEHIND]
    return sorted(found, key=lambda ratio: -ratio["value"])


def unable(document: Document) -> list[Row]:
    """Return the rows that have no figures."""
    return [row for row in document["rows"] if row["problem"]]


def blocks(document: Document) -> list[tuple[str, str, list[Row], list[Ratio]]]:
    """Return engine, label, rows and ratios of each step, in the order of the run."""
    found: dict[tuple[str, str], tuple[list[Row], list[Ratio]]] = {}
    for row in document["rows"]:
        found.setdefault((row["engine"], row["label"]), ([], []))[0].append(row)
    for ratio in document["ratios"]:
        found[ratio["engine"], ratio["label"]][1].append(ratio)
    return [(engine, label, *both) for (engine, label), both in found.items()]


def summary(document: Document) -> str:
    """Say in one sentence what there is."""
    ratios, rows = document["ratios"], document["rows"]
    steady = sum(ratio["stable"] for ratio in ratios)
    return (
        f"{len(rows)} rows and {len(ratios)} ratios in {document['took']:.0f} s, of which {steady} "
        f"are stable; behind a peer on {len(behind(document))}; {len(unable(document))} rows could "
        "not run."
    )


def circumstances(document: Document) -> list[str]:
    """Return what must be known to read the figures, a sentence each."""
    machine, settings = document["machine"], document["settings"]
    servers = ", ".join(f"{name} {text}".strip() for name, text in document["servers"].items())
    packages = ", ".join(f"{name} {text}" for name, text in document["packages"].items())
    return [
        f"Machine: {machine['cores']} cores of {machine['cpu']}, {machine['system']} "
        f"{machine['kernel']}, {machine['python']}.",
        f"holdfast {document['holdfast']}, {document['made']}, "
        f"{'quick' if settings['quick'] else 'full'} run.",
        f"Servers on the same machine, which do not wait for a disk: {servers}.",
        f"Packages: {packages}.",
    ]


METHOD = (
    "Every ratio is what ours costs divided by what the other costs, in the same run: below 1 ours "
    "is cheaper. Contestants alternate in rounds, and the median of the ratios of the rounds "
    "counts; hand-overs, of which a round may have few, count over all rounds together. A ratio "
    "is marked unstable when the even and the odd rounds differ by more than 10 %.",
    "Closed loops (all rows but those of requests on time): a client asks again as soon as it is "
    "done, so a slow answer delays the next question. Latencies count all that was begun in time, "
    "however late it was done; but a closed loop cannot show what those would have felt who came "
    "meanwhile.",
    "Requests on time are an open loop: they come at a fixed rate, and each one's latency counts "
    "from when it should have begun, also when nobody was free to begin it. Nothing is omitted.",
    "Hand-overs are counted from one client to another; who takes a lock again that it has just "
    "given back has not handed it over. Of fewer than 200 only who is ahead is told, unless one "
    "side has ten times as many. One key with many clients is shared by several processes.",
    "If one process has all clients, it and the servers are kept on different cores. No core falls "
    "asleep between a request and its answer: a process of the lowest priority runs on each.",
)
