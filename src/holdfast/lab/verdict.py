"""Verdicts: what each promise came to, in the words that tables and pages use."""

from __future__ import annotations

from dataclasses import dataclass

from ..testing.simulation.checkers import Violation

HELD, DOCUMENTED, BROKEN = "held", "broken as documented", "broken"
IMPOSSIBLE = "not possible"


@dataclass(frozen=True, slots=True)
class Promise:
    """Something a user may rely on."""

    letter: str
    name: str
    says: str


PROMISES = {
    promise.letter: promise
    for promise in (
        Promise("E", "exclusion", "two clients never rely on the same lock at the same time"),
        Promise("V", "validity", "the engine keeps a lock as long as its holder relies on it"),
        Promise("T", "tokens", "tokens are unique, and rise in real time"),
        Promise("G", "guard", "a resource that checks tokens loses no update"),
        Promise("L1", "loss notice", "whoever loses a lock is told in time, and for good"),
        Promise("L2", "liveness", "after the fault, everybody gets every lock again, and keeps it"),
        Promise("R", "release", "what was given back stays so; a failed attempt holds nothing"),
        Promise("X", "no leaks", "nothing stays: no lock, thread, task, socket or process"),
    )
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One promise in one run."""

    promise: str  # its letter
    promised: bool  # does the engine make this promise under these faults?
    violations: tuple[Violation, ...]
    note: str = ""

    @property
    def outcome(self) -> str:
        """Return held, broken as documented (it was never promised), or broken."""
        if not self.violations:
            return HELD
        return BROKEN if self.promised else DOCUMENTED
