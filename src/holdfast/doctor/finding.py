"""What a check finds: how bad it is, what it means, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from .._sync.client import Client


class Level(StrEnum):
    """How bad: from warning on, locks may not be safe, or may not work."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def bad(self) -> bool:
        """Whether something should be done."""
        return self in (Level.WARNING, Level.CRITICAL)


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. Whatever is not ok has a remedy; `fix` applies it where that is harmless."""

    level: Level
    title: str  # a few words: what was looked at
    detail: str  # one sentence: what was found
    remedy: str = ""  # one sentence: what to do
    fix: Callable[[], object] | None = field(default=None, compare=False, repr=False)

    @property
    def fixable(self) -> bool:
        """Whether `holdfast doctor --fix` can do it."""
        return self.fix is not None


@dataclass(frozen=True, slots=True)
class Patient:
    """What is examined: a client, and where its URL came from."""

    client: Client
    source: str = "given"


Check = Callable[[Patient], Iterable[Finding]]
