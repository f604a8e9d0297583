"""Checks of redis:// and its relatives: one server that should keep its data and its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import EngineUnavailable, LockError
from ..model import Fault
from .finding import Finding, Level, Patient
from .redis_access import check_messages, check_rights, check_way, forbidden
from .redis_facts import TIMEOUT, Node, ask, check_told, read_clock
from .redis_server import (
    check_age,
    check_clock,
    check_disk,
    check_kind,
    check_memory,
    check_persistence,
    check_replication,
)

MOST = 3  # names shown as examples


def check(patient: Patient) -> Iterator[Finding]:
    """Examine the server: way, rights, role, memory, persistence, replication, clock, max_ttl."""
    engine: Any = patient.client.engine
    node: Node = engine.node
    bounds = patient.client.guarantees
    quarantine = Fault.SERVER_RESTART in bounds.exclusive
    replicas: int = getattr(engine, "replicas", 0)
    yield from check_way(node.settings)
    if why_silent(node) is not None:
        return  # which the check of all engines reports
    facts = ask(node)
    yield from check_told(facts)
    yield from check_kind(facts)
    yield from check_rights(node, patient.client.namespace, waits=replicas > 0)
    yield from check_messages(node)
    yield from check_memory(facts, node)
    yield from check_persistence(facts, quarantine=quarantine)
    yield from check_disk(facts)
    yield from check_replication(
        facts, wanted=replicas, instead="Connect with replicas=1 or more, or use redlock://."
    )
    if not quarantine:
        yield from check_age(facts, bounds.max_ttl)
    reading = read_clock(node)
    if reading is not None:
        yield from check_clock(reading)
    yield from check_longest(patient)


def why_silent(node: Node) -> str | None:
    """Return why a server does not answer, None if it does, be it with a refusal."""
    try:
        node.command("PING", timeout=TIMEOUT)
    except EngineUnavailable as error:
        answers = forbidden(error) or "MISCONF" in str(error)  # the disk is full: even for PING
        return None if answers else str(error)
    return None


def check_longest(patient: Patient) -> Iterator[Finding]:
    """Nobody may hold for longer than max_ttl: quarantines and blocked servers count on it."""
    longest = patient.client.guarantees.max_ttl
    try:
        shots = patient.client.locks()
    except LockError:
        return  # which is found by others
    names = [
        shot.name
        for shot in shots
        if any(holder.expires_in > longest + 1 for holder in shot.holders)
    ]
    if names:
        shown = ", ".join(repr(name) for name in names[:MOST])
        yield Finding(
            Level.INFO,
            "max_ttl",
            f"{patient.client.engine.location} keeps {shown} for longer than this client's max_ttl "
            f"of {longest:g} s: another one has a larger max_ttl, the server's clock was set back, "
            "or a singleton has a long at_least.",
            "Give all clients the same max_ttl; after a clock was set back: holdfast break NAME.",
        )
