"""What one worker process is told when it starts: a line of JSON on its command line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

NAMESPACE = "lab"
REGISTER = "register.db"
RUSH = tuple(f"rush/{number}" for number in range(24))  # locks that nobody keeps

SYNC, ASYNC, COMMAND = "sync", "async", "command"


@dataclass(frozen=True, slots=True)
class Assignment:
    """Who the worker is, where the locks are, and how hard to work."""

    name: str
    colour: str  # sync, async, or command: `holdfast run`
    url: str
    ttl: float
    pace: float  # the unit of waits and holds, a TTL as a rule
    keys: tuple[str, ...]
    seed: str
    folder: str
    quick: float = 0.8  # share of cycles that only take the lock and give it back
    tasks: int = 1  # at the same time, of an async worker
    rush: float = 0.0  # locks a second that are taken and given back at once, beside all that
    rushes: int = 1  # who take those, at the same time: one that has to wait delays only itself

    @property
    def home(self) -> Path:
        """The folder of the run: diaries, orders, the register."""
        return Path(self.folder)

    @property
    def register(self) -> Path:
        """The file of the resource that the locks protect."""
        return self.home / REGISTER

    @property
    def connect_timeout(self) -> float:
        """How long an engine may be silent: short, so that much happens in a short run."""
        return max(0.5, self.pace)

    def to_json(self) -> str:
        """Return it as one word of a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Assignment:
        """Read it back."""
        found = json.loads(text)
        return cls(**{**found, "keys": tuple(found["keys"])})
