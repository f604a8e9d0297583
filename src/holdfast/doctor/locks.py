"""Checks of the locks in use: cycles of waits, queues that nobody serves, very long holds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from ..model import Snapshot
from .cycles import find_cycles
from .finding import Finding, Level, Patient

LONG = 100  # TTLs
USUAL_TTL = 30.0  # the engine does not tell a holder's TTL, only what is left of it
SECOND_LOOK = 1.0  # seconds: a hand-over under way is not a finding
MOST = 10  # findings of a kind; a list of thousands helps nobody


def cycles_of_waits(patient: Patient) -> Iterator[Finding]:
    """Find clients that wait for each other."""
    cycles = find_cycles(patient.client.locks())
    for cycle in cycles[:MOST]:
        links = (f"{wait.label} waits for {wait.name!r} of {wait.blocker}" for wait in cycle)
        yield Finding(
            Level.WARNING,
            "cycle of waits",
            f"None of these can go on: {', '.join(links)}.",
            f"Break one of them (holdfast break {cycle[0].name!r}), and take several locks in one "
            "order everywhere: client.all_of() does.",
        )
    if not cycles:
        yield Finding(Level.OK, "cycle of waits", "No clients wait for each other in a circle.")


def nobody_served(patient: Patient) -> Iterator[Finding]:
    """Find queues that do not move although nobody holds the lock."""
    first = _heads(patient.client.locks())
    if not first:
        return
    time.sleep(SECOND_LOOK)
    again = _heads(patient.client.locks())
    for name in [name for name, owner in first.items() if again.get(name) == owner][:MOST]:
        yield Finding(
            Level.WARNING,
            "queue",
            f"Somebody waits for {name!r} although nobody holds it.",
            "The waiter may be stopped or cut off; its place is dropped after its TTL. If this "
            "stays, run the engine's own checks.",
        )


def _heads(shots: Sequence[Snapshot]) -> dict[str, str]:
    return {shot.name: shot.waiters[0].owner for shot in shots if shot.waiters and not shot.holders}


def long_held(patient: Patient) -> Iterator[Finding]:
    """Point out locks held for a hundred times their TTL: legal, and often forgotten."""
    now = time.time()
    long = [
        (shot.name, holder, now - holder.since)
        for shot in patient.client.locks()
        for holder in shot.holders
        if now - holder.since > LONG * max(USUAL_TTL, holder.expires_in)
    ]
    for name, holder, age in long[:MOST]:
        yield Finding(
            Level.INFO,
            "long hold",
            f"{holder.label} has held {name!r} for {age / 3600:.1f} h, with token {holder.token}.",
            f"If that is not meant so, stop it, or take it away: holdfast break {name!r} --token "
            f"{holder.token}; max_hold= sets an end.",
        )
