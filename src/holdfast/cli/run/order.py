"""What `holdfast run` was asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ... import Client, Lock
from ..base import Where
from .timetable import Timetable


@dataclass(frozen=True, slots=True)
class Order:
    """What `holdfast run` was asked to do."""

    where: Where
    name: str
    command: tuple[str, ...]
    ttl: float
    timeout: float | None
    grace: float | None
    shared: bool
    limit: int | None
    label: str | None
    metrics_file: Path | None = None

    @property
    def times(self) -> Timetable:
        """When the command is stopped; raises ValueError if that leaves no time to renew."""
        return Timetable.make(self.ttl, self.grace)

    def lock(self, client: Client) -> Lock:
        """Return the kind of lock that is asked for."""
        if self.limit is not None:
            return client.semaphore(self.name, self.limit)
        if self.shared:
            return client.rwlock(self.name).read()
        return client.lock(self.name)
