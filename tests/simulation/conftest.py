"""Says at the end of the run how much was simulated, and which planted bug was caught by whom."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Add up what the chunks recorded; with xdist this runs where all reports arrive."""
    chunks: list[dict[str, Any]] = []
    planted: list[str] = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "call":
                continue
            for name, value in report.user_properties:
                if name == "simulation":
                    chunks.append(json.loads(value))
                elif name == "planted":
                    planted.append(str(value))
    if not chunks and not planted:
        return
    terminalreporter.section("simulation")
    for line in sorted(planted):
        terminalreporter.write_line(f"caught {line}")
    if chunks:
        _write_totals(terminalreporter, chunks)


def _write_totals(terminal: pytest.TerminalReporter, chunks: list[dict[str, Any]]) -> None:
    totals: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for chunk in chunks:
        faults.update(chunk.pop("faults"))
        totals.update(chunk)
    terminal.write_line(
        f"{totals['seeds']} seeds, {totals['calls'] + totals['verbs']} operations "
        f"({totals['calls']} public calls, {totals['verbs']} engine verbs), "
        f"{faults.total()} faults, {totals['seconds']:.1f} s of CPU; without a guard "
        f"{totals['lost']} updates would have been lost"
    )
    terminal.write_line(", ".join(f"{fault} {count}" for fault, count in faults.most_common()))
