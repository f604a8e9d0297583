"""Write advice/measured.json from a document of `holdfast bench --json`.

Engines that the document has no figures of keep theirs. Run tools/choosing.py afterwards.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from holdfast.advice.measured import Figures, document, measured
from holdfast.advice.starts import URLS

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "src" / "holdfast" / "advice" / "measured.json"

VERSION = 1  # of the document
PAIR, OWN_KEYS = "pair", "own keys"  # its scenarios: one client, nobody else; a key for each client
LATENCY, RATE = "pair p50", "pairs/s"


def figures(run: dict[str, Any]) -> dict[str, Figures]:
    """Return what a run has found of ours: the median of a pair alone, the most pairs a second."""
    if run.get("version") != VERSION:
        raise ValueError(
            f"This is no document of `holdfast bench --json` of version {VERSION}: its version is "
            f"{run.get('version')!r}."
        )
    machine = f"{run['machine']['cores']} cores, {run['machine']['cpu']}"
    found = {}
    for engine in URLS:
        pairs = _values(run, engine, (PAIR,), LATENCY)
        rates = _values(run, engine, (PAIR, OWN_KEYS), RATE)
        if pairs and rates:
            found[engine] = Figures(pairs[0], max(rates), machine, run["made"][:10])
    if not found:
        raise ValueError("The document has no figures of holdfast itself, so nothing was written.")
    return found


def _values(
    run: dict[str, Any], engine: str, scenarios: tuple[str, ...], figure: str
) -> list[float]:
    """Return a figure of ours from all rows of these scenarios that have it."""
    return [
        round(row["figures"][figure], 1)
        for row in run["rows"]
        if row["role"] == "ours"
        and row["engine"] == engine
        and row["scenario"] in scenarios
        and row["figures"].get(figure) is not None
    ]


def main() -> int:
    """Read the document that is named, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("document", type=Path, metavar="BENCH.json")
    path = parser.parse_args().document
    try:
        new = figures(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        print(f"{path.name}: {error}", file=sys.stderr)
        return 1
    both = {**measured(), **new}
    ordered = {engine: both[engine] for engine in URLS if engine in both}
    FILE.write_text(document(ordered), encoding="utf-8")
    print(f"Figures of {', '.join(new)}. Now: tools/choosing.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
