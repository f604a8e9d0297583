"""Write what docs/choosing.md and `holdfast advise` know of the engines; --check only compares.

From what the engines declare (`guarantees`) come advice/promises.json and the promise matrix of the
page, from advice/measured.json the measured figures beside the claimed ones.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import holdfast
from holdfast.advice.measured import measured
from holdfast.advice.promises import FACTS, cell, document, words
from holdfast.advice.starts import URLS
from holdfast.model import Fault, Guarantees

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "choosing.md"
PROMISES = ROOT / "src" / "holdfast" / "advice" / "promises.json"

# What others claim for their own implementations, on their own machines: latency, locks a second.
CLAIMED = {
    "redis": ("0.5–2 ms", "50,000–100,000"),
    "redlock": ("1–50 ms; p50 2.3 ms and p99 12 ms with 100 clients", "10,000–50,000"),
    "zookeeper": ("5–50 ms; p50 8.7 ms and p99 45 ms", "1,000–20,000"),
    "etcd": ("5–50 ms", "2,000–20,000"),
    "postgresql": ("1–5 ms", "5,000–20,000"),
    "dynamodb": ("5–10 ms", "5,000–10,000"),
}


def declared() -> dict[str, Guarantees]:
    """Return what each engine declares; nothing is connected to."""
    found = {}
    for engine, url in URLS.items():
        with holdfast.connect(url) as client:
            found[engine] = client.guarantees
    return found


def promises(rows: dict[str, Guarantees]) -> str:
    """Return the text of promises.json."""
    listed = {engine: document(row) for engine, row in rows.items()}
    return json.dumps(listed, indent=2) + "\n"


def matrix(rows: dict[str, Guarantees]) -> Iterator[str]:
    """Yield the promise matrix, one engine a column."""
    yield f"| two never both see `held`, under | {' | '.join(rows)} |"
    yield "|---" * (len(rows) + 1) + "|"
    for fault in Fault:
        cells = [cell(row, fault).replace("no", "**no**") for row in rows.values()]
        yield f"| {words(fault)} | {' | '.join(cells)} |"
    for name in FACTS:
        said = ["yes" if getattr(row, name) else "**no**" for row in rows.values()]
        yield f"| `{name}`: {FACTS[name]} | {' | '.join(said)} |"
    yield f"| `expiry` | {' | '.join(row.expiry for row in rows.values())} |"
    yield f"| `min_ttl` | {' | '.join(f'{row.min_ttl:g} s' for row in rows.values())} |"


def figures() -> Iterator[str]:
    """Yield what is claimed elsewhere beside what was measured with holdfast."""
    headers = (
        "engine",
        "acquire, claimed",
        "pair, measured",
        "locks/s, claimed",
        "pairs/s, measured",
    )
    yield f"| {' | '.join(headers)} |"
    yield "|---" * len(headers) + "|"
    own = measured()
    for engine in URLS:
        latency, rate = CLAIMED.get(engine, ("none", "none"))
        row = own.get(engine)
        pair = f"{row.pair_us:,.0f} µs" if row else "not yet"
        pairs = f"{row.pairs_per_second:,.0f}" if row else "not yet"
        yield f"| {engine} | {latency} | {pair} | {rate} | {pairs} |"
    yield ""
    if own:
        where = sorted({f"{row.machine}, {row.date}" for row in own.values()})
        yield f"Measured on: {'; '.join(where)}."
    else:
        yield "Not measured yet. `tools/measured.py` puts the figures of a `holdfast bench` here."


def filled(page: str, name: str, lines: Iterator[str]) -> str:
    """Return the page with this text between the marks of that name."""
    begin, end = f"<!-- {name}: made by tools/choosing.py -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"docs/choosing.md has no marks for {name}: {begin} … {end}")
    text = "\n".join((begin, *lines, end))
    return pattern.sub(lambda _: text, page)


def wanted() -> dict[Path, str]:
    """Return the files as they should be."""
    rows = declared()
    page = filled(PAGE.read_text(encoding="utf-8"), "promises", matrix(rows))
    return {PROMISES: promises(rows), PAGE: filled(page, "figures", figures())}


def main() -> int:
    """Write the files, or say which is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = [
        (path, text)
        for path, text in wanted().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is out of date: run tools/choosing.py")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
