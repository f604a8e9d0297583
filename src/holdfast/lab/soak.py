"""The soak: run after run, each with a random swarm of faults, until the time is over."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from .. import __version__
from .experiment import Progress, Setup, conduct
from .report import Report

RUN = 20.0  # seconds of faults in one run


@dataclass
class Total:
    """What one engine has been through."""

    runs: int = 0
    seconds: float = 0.0
    leases: int = 0
    missed: int = 0
    writes: int = 0
    refused: int = 0
    lost: int = 0  # updates, without a guard
    faults: Counter[str] = field(default_factory=Counter)
    seeds: list[int] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def add(self, report: Report) -> None:
        """Count one run."""
        found = report.document()
        self.runs += 1
        self.seconds += report.seconds
        self.leases += found["leases"]
        self.missed += sum(found["missed"].values())
        self.writes += sum(1 for entry in report.chronicle.entries if not entry.refused)
        self.refused += found["refused"]
        self.lost += found["lost_updates"]["unguarded"]
        self.faults.update(report.counted)
        self.seeds.append(report.seed)
        for verdict in report.broken:
            first = verdict.violations[0].sentence
            self.broken.append(f"seed {report.seed}: {verdict.promise}: {first}")


def soak(
    engines: Sequence[str],
    minutes: float,
    seed: int,
    progress: Callable[[str, int], Progress],
    seconds: float = RUN,
) -> Iterator[Report]:
    """Yield one report after the other, engines in turn, until the time is over."""
    end = time.monotonic() + minutes * 60
    while True:
        for engine in engines:
            setup = Setup(engine, (), seed, seconds, swarm=True)
            yield conduct(setup, progress(engine, seed))
            seed += 1
            if time.monotonic() > end:
                return


def report_text(totals: dict[str, Total], network: str) -> str:
    """Return the report of a soak, as a page."""
    today = datetime.now(UTC).date().isoformat()
    lines = [
        f"# Soak of {today}",
        "",
        f"holdfast {__version__}, Python {platform.python_version()}, {platform.system()} "
        f"{platform.release()}, {network} network. Each run had a random swarm of the faults under "
        "which the engine promises exclusion; every promise was checked after every run.",
        "",
        "| engine | runs | minutes of faults | leases | attempts without | faults | writes "
        "| refused | lost without a guard | promises broken |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for engine, total in totals.items():
        lines.append(
            f"| {engine} | {total.runs} | {total.seconds / 60:.1f} | {total.leases} | "
            f"{total.missed} | {total.faults.total()} | {total.writes} | {total.refused} | "
            f"{total.lost} | {len(total.broken)} |"
        )
    for engine, total in totals.items():
        kinds = ", ".join(f"{name} {count}" for name, count in total.faults.most_common())
        lines += ["", f"**{engine}**: seeds {total.seeds[0]} to {total.seeds[-1]}. {kinds}."]
        rate = 3 / max(1, total.faults.total())
        if not total.broken:
            lines.append(
                f"No promise was broken: at most {rate:.2%} per fault, with 95 % certainty."
            )
        lines += [f"- BROKEN {sentence}" for sentence in total.broken]
    return "\n".join([*lines, ""])
