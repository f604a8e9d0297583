"""What each engine promises, readable where its driver is not installed.

promises.json is written by tools/choosing.py from what the engines themselves declare; a test
compares the two.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from ..model import Fault, Guarantees

# Where there is no server, or one that lives and dies with its clients, this cannot happen.
IMPOSSIBLE = {
    "memory": frozenset(
        {
            Fault.PARTITION,
            Fault.SERVER_PAUSE,
            Fault.SERVER_RESTART,
            Fault.SERVER_DATA_LOSS,
            Fault.FAILOVER,
        }
    ),
    "sqlite": frozenset({Fault.PARTITION, Fault.SERVER_PAUSE, Fault.FAILOVER}),
}

# The yes/no promises, and what each means to a user.
FACTS = {
    "fencing": "tokens rise",
    "fair": "first come, first served",
    "push": "waiters are told, and need not look",
    "crash_detection": "a crashed holder is replaced before its TTL is over",
    "at_least": "singleton(at_least=…) is possible",
}


@cache
def promises() -> dict[str, Guarantees]:
    """Return what every engine promises, by its name."""
    listed = json.loads((files(__package__) / "promises.json").read_text(encoding="utf-8"))
    return {
        engine: Guarantees(
            engine=engine, **{**row, "exclusive": frozenset(map(Fault, row["exclusive"]))}
        )
        for engine, row in listed.items()
    }


def document(promised: Guarantees) -> dict[str, Any]:
    """Return a promise for JSON: what `promises` reads."""
    return {
        "exclusive": [str(fault) for fault in Fault if fault in promised.exclusive],
        **{name: getattr(promised, name) for name in FACTS},
        "expiry": promised.expiry,
        "min_ttl": promised.min_ttl,
        "max_ttl": promised.max_ttl,
    }


def cell(promised: Guarantees, fault: Fault) -> str:
    """Say whether exclusion is promised under a fault: `yes`, `no`, or `–` if it cannot happen."""
    if fault in promised.exclusive:
        return "yes"
    return "–" if fault in IMPOSSIBLE.get(promised.engine, ()) else "no"


def words(name: str) -> str:
    """Return the name of a fault or of a promise as people say it."""
    return name.replace("_", " ")
