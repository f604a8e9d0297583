"""What is asked of a contestant: how many clients, of which kind, on which keys, how often."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

THREADS, TASKS, PROCESSES = "threads", "tasks", "processes"
OWN, HOT = "own", "hot"
CLOSED, OPEN = "closed", "open"


@dataclass(frozen=True)
class Load:
    """One kind of work for some clients; `first` is the number of the first one in a process.

    Without `rate` the loop is closed: a client asks again as soon as it is done. With a rate it is
    open: so many requests per second begin on time, whoever is free serves the next one, and its
    latency counts from when it should have begun. So nothing that comes late is left out.
    """

    style: str = THREADS
    clients: int = 1
    keys: str = OWN
    reads: float | None = None  # share of readers; None: all exclusive
    rate: float | None = None  # requests per second
    locks: int = 1  # that one request takes, one after the other
    work: float = 0.0  # seconds that a request has to do besides
    turns: int | None = None  # end after so many; None: when the time is over
    first: int = 0

    @property
    def loop(self) -> str:
        """Whether it is closed or open."""
        return CLOSED if self.rate is None else OPEN

    def shares(self, processes: int) -> list[Self]:
        """Return the parts that processes have in it; threads and tasks are all in the first."""
        if self.style != PROCESSES:
            return [self]
        count = min(processes, self.clients)
        parts, first = [], 0
        for number in range(count):
            clients = self.clients // count + (number < self.clients % count)
            rate = None if self.rate is None else self.rate * clients / self.clients
            parts.append(replace(self, style=THREADS, clients=clients, first=first, rate=rate))
            first += clients
        return parts

    def key(self, client: int, number: int = 0) -> str:
        """Return the name of a client's lock."""
        return "hot" if self.keys == HOT else f"own/{client}/{number}"

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)
