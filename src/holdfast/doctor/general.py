"""Checks for every engine: does it answer, does it keep a lock, do tokens rise?"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator

from ..clocks import boot_clock
from ..model import Fault
from .finding import Finding, Level, Patient

PROBE = "holdfast-doctor"  # reserved names; each examination takes its own
PROBE_TTL = 10.0
PINGS = 5
CLOCKS_APART = 10.0  # seconds: nothing breaks, but ages and dates shown are wrong


def settings(patient: Patient) -> Iterator[Finding]:
    """Say what is examined, and whether the default TTL fits the engine."""
    client = patient.client
    yield Finding(
        Level.INFO,
        "settings",
        f"This examines namespace {client.namespace!r} on {client.engine.location} "
        f"({patient.source}).",
    )
    bounds = client.guarantees
    fits = bounds.min_ttl <= 30.0 <= bounds.max_ttl
    yield Finding(
        Level.OK if fits else Level.WARNING,
        "default TTL",
        f"The engine keeps a lock {bounds.min_ttl:g} s to {bounds.max_ttl:g} s without news; "
        f"the default of 30 s {'fits' if fits else 'does not'}.",
        "" if fits else "Give connect() a ttl= between those, or raise its max_ttl=.",
    )


def reachable(patient: Patient) -> Iterator[Finding]:
    """Say whether the engine answers, and how fast."""
    client = patient.client
    times = []
    for _ in range(PINGS):
        start = boot_clock()
        client.ping()  # what it raises is a finding, too
        times.append(boot_clock() - start)
    middle = sorted(times)[PINGS // 2]
    slow = middle > 0.25
    yield Finding(
        Level.WARNING if slow else Level.OK,
        "answers",
        f"The engine answers in {middle * 1000:.3g} ms (middle of {PINGS}).",
        "Leases are renewed every third of their TTL: use long ones, or move closer to the engine."
        if slow
        else "",
    )


def take_and_give_back(patient: Patient) -> Iterator[Finding]:
    """Take, renew and give back a lock of a reserved name, twice; tokens must rise."""
    client = patient.client
    name = f"{PROBE}/{secrets.token_hex(8)}"
    tokens, since = [], 0.0
    bounds = client.guarantees
    ttl = min(max(PROBE_TTL, bounds.min_ttl), bounds.max_ttl)
    for _ in range(2):
        lease = client.lock(name, ttl=ttl, label="holdfast doctor").acquire(timeout=5)
        assert lease is not None, "nobody else knows that name"
        try:
            tokens.append(lease.token)
            lease.ensure_held(ttl * 0.95)  # more than is confirmed a moment later: asks the engine
            since = client.inspect(name).holders[0].since
        finally:
            given_back = lease.release()
        if given_back is not True:
            yield Finding(
                Level.CRITICAL,
                "lock",
                "A lock was taken and renewed, but giving it back was not confirmed.",
                "Look at the engine's log; do not rely on it until this works.",
            )
            return
    yield Finding(Level.OK, "lock", "A lock can be taken, renewed and given back.")
    rises = tokens[1] > tokens[0]
    yield Finding(
        Level.OK if rises else Level.CRITICAL,
        "tokens",
        f"The token {'rose' if rises else 'did not rise'} from {tokens[0]} to {tokens[1]}.",
        ""
        if rises
        else "Do not use this engine with guards; look for restored or rolled back data.",
    )
    apart = abs(time.time() - since)
    if apart > CLOCKS_APART:
        yield Finding(
            Level.INFO,
            "clocks",
            f"The engine's clock and this machine's are {apart:.0f} s apart; leases do not "
            "depend on that, but the ages shown do.",
            "Let NTP set both.",
        )


def promises(patient: Patient) -> Iterator[Finding]:
    """Say what the engine does not promise."""
    bounds = patient.client.guarantees
    missing = sorted(set(Fault) - bounds.exclusive)
    if missing:
        yield Finding(
            Level.INFO,
            "promises",
            "Two holders at once cannot be excluded here under: "
            f"{', '.join(fault.replace('_', ' ') for fault in missing)}.",
            "Where that matters, let the resource check tokens (holdfast.guards).",
        )
    if not bounds.fencing:
        yield Finding(
            Level.WARNING,
            "promises",
            "This engine's tokens may fall, so guards cannot rely on them.",
            "Choose an engine whose guarantees include fencing.",
        )
