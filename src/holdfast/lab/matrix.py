"""The matrix: every engine under every fault, one run for each cell."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .. import __version__
from .experiment import Impossible, Progress, Setup, conduct
from .nemeses import NEMESES
from .report import Report
from .verdict import BROKEN, IMPOSSIBLE


@dataclass(frozen=True)
class Cell:
    """One engine under one fault; a report, or why there is none."""

    engine: str
    fault: str
    report: Report | None
    reason: str = ""

    @property
    def outcome(self) -> str:
        """What the cell says."""
        return IMPOSSIBLE if self.report is None else self.report.outcome

    @property
    def promised(self) -> bool:
        """Whether the engine promises exclusion here."""
        return self.report is not None and self.report.of("E").promised

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        if self.report is None:
            return {
                "engine": self.engine,
                "fault": self.fault,
                "outcome": self.outcome,
                "reason": self.reason,
            }
        found = self.report.document()
        del found["faults"]
        return {"engine": self.engine, "fault": self.fault, **found}


@dataclass(frozen=True)
class Matrix:
    """All cells of one measurement."""

    engines: Sequence[str]
    faults: Sequence[str]
    cells: dict[tuple[str, str], Cell]
    seed: int
    seconds: float
    network: str

    @property
    def broken(self) -> list[Cell]:
        """The cells in which a promise was broken."""
        return [cell for cell in self.cells.values() if cell.outcome == BROKEN]

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "made": datetime.now(UTC).date().isoformat(),
            "version": __version__,
            "python": platform.python_version(),
            "seed": self.seed,
            "seconds": self.seconds,
            "network": self.network,
            "engines": list(self.engines),
            "faults": list(self.faults),
            "cells": [cell.document() for cell in self.cells.values()],
        }


def measure(
    engines: Sequence[str],
    faults: Sequence[str],
    seconds: float,
    seed: int,
    network: str,
    progress: Callable[[str, str], Progress],
) -> Matrix:
    """Run every cell, one after the other; `progress` is told which one it is."""
    cells = {}
    for engine in engines:
        for fault in faults or NEMESES:
            setup = Setup(engine, (fault,), seed, seconds)
            try:
                cell = Cell(engine, fault, conduct(setup, progress(engine, fault)))
            except Impossible as error:
                cell = Cell(engine, fault, None, str(error))
            cells[engine, fault] = cell
    return Matrix(tuple(engines), tuple(faults or NEMESES), cells, seed, seconds, network)
