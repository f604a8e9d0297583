"""How long a TTL to start with: the longest pause or outage to ride out decides.

Rule 1: a renewal is due when a third of the TTL has passed, and one may be lost: three times the
        pause. ZooKeeper confirms 60 to 70 % of a TTL, not all of it: four times.
Rule 2: nothing known: 30 s where somebody waits for the result, 60 s for a job.
Rule 3: never below 10 s: an election of etcd, a slow disk or a busy machine takes seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..model import Guarantees
from .needs import Needs

TIMES = {"zookeeper": 4}
USUAL_TIMES = 3
UNKNOWN = {"interactive": 30.0, "batch": 60.0}
LEAST = 10.0
STEP = 5  # seconds; nobody needs a TTL of 37 s
LONGEST_SESSION = 40.0  # what ZooKeeper grants unless its maxSessionTimeout is raised

TOO_SHORT = (
    "Too short costs locks: a pause or an outage that is longer than the TTL leaves room for two "
    "holders, and renewals, three per TTL, are a load."
)
TOO_LONG = (
    "Too long costs time: after a crash that the engine does not notice, everybody waits for the "
    "rest of the TTL."
)


@dataclass(frozen=True, slots=True)
class Sized:
    """A TTL, why, and what has to be raised for it (None: nothing)."""

    seconds: float
    reasons: tuple[str, ...]
    max_ttl: float | None = None


def size(needs: Needs, promised: Guarantees) -> Sized:
    """Return the TTL to start with."""
    if needs.pause is None:
        work = needs.work or "interactive"
        seconds = UNKNOWN[work]
        why = f"{seconds:g} s suits {work} work as long as the longest pause is not known."
    else:
        times = TIMES.get(promised.engine, USUAL_TIMES)
        seconds = max(LEAST, math.ceil(times * needs.pause / STEP) * STEP)
        why = (
            f"{times} × {needs.pause:g} s, the longest pause or outage to ride out, in steps of "
            f"{STEP} s and at least {LEAST:g} s: a renewal is due when a third has passed, and one "
            "may be lost."
        )
    reasons = [why]
    if promised.engine == "zookeeper" and seconds > LONGEST_SESSION:
        reasons.append(
            f"ZooKeeper grants {LONGEST_SESSION:g} s at most unless maxSessionTimeout is raised."
        )
    raised = None
    if seconds > promised.max_ttl:
        raised = seconds
        reasons.append(
            f"More than {promised.max_ttl:g} s must be allowed: max_ttl, in all clients."
        )
    return Sized(seconds, (*reasons, TOO_SHORT, TOO_LONG), raised)
