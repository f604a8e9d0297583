"""Checks of redlock://: each server for itself, and all of them against each other.

What is the same on every server is said once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import LockError
from ..names import record_key
from ..redis_record import MICROS
from .finding import Finding, Level, Patient
from .redis import why_silent
from .redis_access import check_messages, check_rights, check_way
from .redis_facts import TIMEOUT, Facts, Node, Reading, ask, check_told, read_clock
from .redis_server import (
    Kept,
    check_disk,
    check_kind,
    check_memory,
    check_replication,
    kept_on_disk,
)

APART = 0.010
FAR_APART = 0.100

INDEPENDENT = "Give each node no replicas: the other nodes are there for when one is down."


def check(patient: Patient) -> Iterator[Finding]:
    """Examine all nodes."""
    engine: Any = patient.client.engine
    yield from check_nodes(
        engine.nodes,
        patient.client.namespace,
        quorum=getattr(engine, "quorum", None),
        max_ttl=patient.client.guarantees.max_ttl,
    )


def check_nodes(
    nodes: Sequence[Node], namespace: str, *, quorum: int | None = None, max_ttl: float = 300.0
) -> Iterator[Finding]:
    """Examine each node that answers, then compare them."""
    quorum = quorum or len(nodes) // 2 + 1
    yield from check_number(len(nodes), quorum)
    silent = {node.location: why for node in nodes if (why := why_silent(node)) is not None}
    yield from check_majority(len(nodes), quorum, silent)
    there = [node for node in nodes if node.location not in silent]
    facts = [ask(node) for node in there]
    each: dict[str, list[Finding]] = {}
    for node, known in zip(there, facts, strict=True):
        each[node.location] = list(check_node(node, known, namespace))
        roster = read_roster(node, namespace)
        if roster is not None:
            mine = check_roster(node.location, roster, max_ttl=max_ttl, nodes=len(nodes))
            each[node.location] += mine
    yield from together(each)
    yield from check_duplicates(facts)
    yield from check_clocks([reading for node in there if (reading := read_clock(node))])


def check_node(node: Node, facts: Facts, namespace: str) -> Iterator[Finding]:
    """Examine one node that answers."""
    yield from check_way(node.settings)
    yield from check_told(facts)
    yield from check_kind(facts)
    yield from check_rights(node, namespace, redlock=True)
    yield from check_messages(node)
    yield from check_memory(facts, node)
    yield from check_remembers(facts)
    yield from check_disk(facts)
    yield from check_replication(facts, wanted=0, instead=INDEPENDENT)


def check_remembers(facts: Facts) -> Iterator[Finding]:
    """A node that forgot everything is kept out; one that comes back with an old copy is not."""
    found = kept_on_disk(facts)
    if found is None:
        return
    kept, words = found
    if kept is Kept.ALL:
        yield Finding(Level.OK, "persistence", f"{facts.location} {words}.")
    elif kept is Kept.NOTHING:
        yield Finding(
            Level.INFO,
            "persistence",
            f"{facts.location} {words}, and then grants none for max_ttl; but when all nodes "
            "restart at once, nobody knows that there were any.",
            "Never restart all at once, or set appendonly yes and appendfsync always.",
        )
    else:
        yield Finding(
            Level.WARNING,
            "persistence",
            f"{facts.location} {words}; it still knows its roster, so it is not kept out, and two "
            "clients may hold the same lock.",
            "Set appendonly yes and appendfsync always, or let it keep nothing: appendonly no, "
            'save "".',
        )


def together(each: Mapping[str, Sequence[Finding]]) -> Iterator[Finding]:
    """Yield all findings of all nodes; one that every node has, only once."""
    alike: Counter[Finding] = Counter()
    fixes: dict[Finding, list[Callable[[], object]]] = {}
    for where, findings in each.items():
        for finding in findings:
            same = _of_any(finding, where)
            alike[same] += 1
            fixes.setdefault(same, []).extend([finding.fix] if finding.fix else [])
    said: set[Finding] = set()
    for where, findings in each.items():
        for finding in findings:
            same = _of_any(finding, where)
            if alike[same] < len(each) or len(each) == 1:
                yield finding
            elif same not in said:
                said.add(same)
                yield replace(same, fix=_all(fixes[same]) if fixes[same] else None)


def _of_any(finding: Finding, where: str) -> Finding:
    return replace(finding, detail=finding.detail.replace(where, "Each node"), fix=None)


def _all(fixes: Sequence[Callable[[], object]]) -> Callable[[], object]:
    return lambda: [fix() for fix in fixes]


def check_number(number: int, quorum: int) -> Iterator[Finding]:
    """An odd number of nodes: one more than that costs more and survives no more."""
    down = number - quorum
    if number % 2 or quorum > number // 2 + 1:
        yield Finding(Level.OK, "nodes", f"There are {number} nodes, of which {down} may be down.")
        return
    yield Finding(
        Level.WARNING,
        "nodes",
        f"There are {number} nodes, of which {down} may be down: no more than with {number - 1}.",
        "Take one node away, or add one; tell all clients at the same time.",
    )


def check_majority(number: int, quorum: int, silent: Mapping[str, str]) -> Iterator[Finding]:
    """A majority of all nodes must answer, not of those that happen to be there."""
    left = number - len(silent)
    for where, why in silent.items():
        yield Finding(
            Level.WARNING if left >= quorum else Level.CRITICAL,
            "nodes",
            f"{where} does not answer ({why.rstrip('.')}); {left} of {number} nodes do, and "
            f"{quorum} must.",
            "Start it again, or look at the network; it is used as soon as it is back.",
        )


def check_duplicates(facts: Sequence[Facts]) -> Iterator[Finding]:
    """One server under two addresses would vote twice."""
    seen: dict[str, str] = {}
    for one in facts:
        run_id = one.info.get("run_id")
        if run_id is not None and seen.setdefault(run_id, one.location) != one.location:
            yield Finding(
                Level.CRITICAL,
                "duplicates",
                f"{one.location} and {seen[run_id]} are the same server, which would vote twice.",
                "Name each server once.",
            )
    if len(facts) > 1 and len(seen) == len(facts):
        yield Finding(Level.OK, "duplicates", "All nodes are different servers.")


def check_clocks(readings: Sequence[Reading]) -> Iterator[Finding]:
    """Clocks of nodes that run apart make tokens slower to get, and point to a clock not kept."""
    if len(readings) < 2:
        return
    first = min(readings, key=lambda reading: reading.ahead)
    last = max(readings, key=lambda reading: reading.ahead)
    apart = max(0.0, last.ahead - first.ahead - first.doubt - last.doubt)
    if apart <= APART:
        yield Finding(Level.OK, "clocks", "The clocks of all nodes agree.")
        return
    yield Finding(
        Level.CRITICAL if apart > FAR_APART else Level.WARNING,
        "clocks",
        f"{last.location} has a clock {apart * 1000:.0f} ms ahead of that of {first.location}; one "
        "of them will be set right one day, and its locks then end early or late by that much.",
        "Let NTP run on all nodes, and never let it set a clock in a step.",
    )


# --- Rosters: what nodes know of the whole (S21). ---


class Roster(NamedTuple):
    """What a node has written down: with which max_ttl, among how many, kept out for how long."""

    max_ttl: float
    nodes: int
    out: float


def read_roster(node: Node, namespace: str) -> Roster | None:
    """Return a node's roster, None if it has none, or does not tell."""
    key = f"{{{record_key(namespace, '').rstrip('/')}}}:roster"
    try:
        max_ttl, nodes, until = node.command(
            *("HMGET", key, "max_ttl", "nodes", "until"), timeout=TIMEOUT
        )
        whole, millionths = node.command("TIME", timeout=TIMEOUT)
    except LockError:
        return None
    if max_ttl is None or nodes is None or until is None:
        return None
    now = int(whole) * MICROS + int(millionths)
    return Roster(int(max_ttl) / MICROS, int(nodes), max(0, int(until) - now) / MICROS)


def check_roster(where: str, roster: Roster, *, max_ttl: float, nodes: int) -> Iterator[Finding]:
    """All clients must mean the same nodes and the same max_ttl; who forgot is kept out."""
    if (roster.max_ttl, roster.nodes) != (max_ttl, nodes):
        yield Finding(
            Level.CRITICAL,
            "roster",
            f"{where} is used with max_ttl={roster.max_ttl:g} as one of {roster.nodes} nodes, and "
            f"this client has max_ttl={max_ttl:g} and {nodes} nodes.",
            "Connect with the same nodes and the same max_ttl everywhere.",
        )
    if roster.out > 0:
        yield Finding(
            Level.WARNING,
            "roster",
            f"{where} has forgotten its locks in a restart, and grants none for another "
            f"{roster.out:.0f} s.",
            "Wait, and let no other node restart meanwhile.",
        )
