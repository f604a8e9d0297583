"""The report of one run: what was asked, done and found, ready for JSON, tables and pages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .checks import lost_updates
from .chronicle import Chronicle
from .verdict import BROKEN, DOCUMENTED, HELD, PROMISES, Verdict

if TYPE_CHECKING:
    from .experiment import Setup

MOST = 20  # violations of each kind that JSON lists


@dataclass(frozen=True)
class Report:
    """What one run came to."""

    engine: str
    faults: tuple[str, ...]
    seed: int
    seconds: float
    ttl: float
    crew: tuple[str, ...]
    verdicts: list[Verdict]
    chronicle: Chronicle
    folder: Path

    @classmethod
    def make(
        cls,
        setup: Setup,
        ttl: float,
        verdicts: list[Verdict],
        chronicle: Chronicle,
        folder: Path,
    ) -> Report:
        """Put it together."""
        return cls(
            *(setup.engine, setup.faults, setup.seed, setup.seconds, ttl, setup.crew),
            *(verdicts, chronicle, folder),
        )

    @property
    def broken(self) -> list[Verdict]:
        """The promises that were made and not kept."""
        return [verdict for verdict in self.verdicts if verdict.outcome == BROKEN]

    @property
    def outcome(self) -> str:
        """The worst of all verdicts."""
        found = {verdict.outcome for verdict in self.verdicts}
        return next(one for one in (BROKEN, DOCUMENTED, HELD) if one in found)

    def of(self, letter: str) -> Verdict:
        """Return the verdict on one promise."""
        return next(verdict for verdict in self.verdicts if verdict.promise == letter)

    @property
    def counted(self) -> Counter[str]:
        """How often each fault came."""
        return Counter(span.name for span in self.chronicle.faults)

    @property
    def replay(self) -> str:
        """The command that runs the same faults again."""
        faults = "".join(f" --fault {name}" for name in self.faults)
        time = f"--seconds {self.seconds:g} --ttl {self.ttl:g}"
        return f"holdfast lab run --engine {self.engine}{faults} {time} --seed {self.seed}"

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        chronicle = self.chronicle
        return {
            "engine": self.engine,
            "faults": list(self.faults),
            "seed": self.seed,
            "seconds": self.seconds,
            "ttl": self.ttl,
            "crew": list(self.crew),
            "outcome": self.outcome,
            "verdicts": [_verdict(verdict) for verdict in self.verdicts],
            "leases": len(chronicle.acquired),
            "missed": dict(sorted(chronicle.missed.items())),
            "struck": dict(sorted(self.counted.items())),
            "lost_updates": lost_updates(chronicle),
            "refused": sum(1 for entry in chronicle.entries if entry.refused),
            "longest_stall": round(chronicle.stalled, 3),
            "folder": str(self.folder) if self.broken else None,
            "replay": self.replay,
        }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "promise": verdict.promise,
        "name": PROMISES[verdict.promise].name,
        "promised": verdict.promised,
        "outcome": verdict.outcome,
        "violations": len(verdict.violations),
        "examples": [f"{v.at:.3f} s: {v.sentence}" for v in verdict.violations[:MOST]],
    }
