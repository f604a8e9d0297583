"""The roster of a Redlock: how nodes that forgot are told from nodes that are new (S21).

Rule 1: every node that may grant has a roster; it is gone with the node's memory.
Rule 2: without any roster anywhere the whole Redlock is new, and works at once.
Rule 3: rosters name the runs of all nodes that were enrolled. While each of those still has its
        roster, a node without one is new, and is enrolled at once.
Rule 4: else it may be one that forgot, who knows when, and grants nothing for max_ttl from now. By
        then all that it forgot is over.
Rule 5: the same, from its start, for a node that was started again with data, unless it writes
        everything to disk before it answers: what it read back may be old.
Rule 6: a node is enrolled as what it was a moment ago, or not at all: it may forget meanwhile. And
        the others hear of it first, or they would not miss it later.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import EngineUnavailable, NotSupported
from ...redis_link import Template
from ...redis_record import load_script, micros
from .redlock_node import AsyncRedlockNode
from .redlock_nodes import AsyncRedlockNodes, is_answer
from .redlock_question import DEADLINE, Question

ROSTER = load_script("roster", "hinting")
NONE, FORMING, COMPLETE, EARLIER = range(4)
ENROLLED = (COMPLETE, EARLIER)
TRIES = 3
SOON = 2.0  # seconds within which an enrolment is over; what comes later is refused


def roster_key(record_key: str) -> str:
    """Return the key of the roster of a record's namespace."""
    return f"{{{record_key.rsplit('/', 1)[0]}}}:roster"


def disagree(found: Sequence[bytes], max_ttl: float, nodes: int) -> NotSupported:
    """Return the error for clients that were set up differently."""
    theirs, count = int(found[0]) / 1e6, int(found[1])
    return NotSupported(
        f"This Redlock is used with max_ttl={theirs:g} and {count} nodes by others, and with "
        f"max_ttl={max_ttl:g} and {nodes} nodes here; all its clients must agree on both."
    )


async def enrol(nodes: AsyncRedlockNodes, key: str, max_ttl: float, timeout: float) -> None:
    """Write rosters where they are missing; where that means that a node forgot, keep it out."""
    for _ in range(TRIES):
        if await _enrol_once(nodes, key, max_ttl, timeout):
            return


async def _enrol_once(nodes: AsyncRedlockNodes, key: str, max_ttl: float, timeout: float) -> bool:
    """Say whether it came to an end; else somebody else was quicker."""
    deadlines = [DEADLINE % node.latest(SOON) for node in nodes.all]

    def tail(node: AsyncRedlockNode) -> bytes:
        return node.run_word + deadlines[node.number]

    found = await _ask(nodes, Question(Template(ROSTER, 2, 1, key, "read"), tail), timeout)
    if not any(state in ENROLLED for state, _ in found.values()):
        # Nobody grants yet. Each node is marked before any roster is complete, so that whoever
        # looks meanwhile can tell a node that is being enrolled from one that forgot.
        found = await _ask(nodes, Question(Template(ROSTER, 2, 1, key, "form"), tail), timeout)
        if any(state in ENROLLED for state, _ in found.values()):
            return False
        found = {number: (FORMING, known) for number, (_, known) in found.items()}
    runs = {number: nodes.all[number].greeting.run_id for number in found}
    for (state, out), some in (await _sort_out(nodes, max_ttl, timeout, found, runs)).items():
        rules = (state, micros(max_ttl), len(nodes.all), micros(out))
        template = Template(ROSTER, 2, 1, key, "join", *rules, *runs.values())
        joining = Question(template, tail)
        answers = await nodes.ask(joining, timeout, some, few=True)
        if state == COMPLETE and not all(is_answer(answers[node.number]) for node in some):
            break  # whoever is enrolled without their knowledge could forget unnoticed: next time
    return True


async def _ask(
    nodes: AsyncRedlockNodes, question: Question, timeout: float
) -> dict[int, tuple[int, set[str]]]:
    """Return by node the state of its roster, and the runs that it knows."""
    answers = await nodes.ask(question, timeout)
    found = {
        number: (int(answer[0]), {one.decode() for one in answer[2:]})
        for number, answer in enumerate(answers)
        if is_answer(answer)
    }
    if len(found) < nodes.quorum:
        raise nodes.missing(answers)
    return found


async def _sort_out(
    nodes: AsyncRedlockNodes,
    max_ttl: float,
    timeout: float,
    found: dict[int, tuple[int, set[str]]],
    runs: dict[int, str],
) -> dict[tuple[int, float], list[AsyncRedlockNode]]:
    """Return nodes by state, and for how long to keep them out; first those that remember."""
    known = set[str]().union(*(some for _, some in found.values()))
    there = {runs[number] for number, (state, _) in found.items() if state in (FORMING, COMPLETE)}
    # Somebody forgot, or cannot be asked, or does not say who it is.
    forgot = not known <= there or "" in runs.values()
    groups: dict[tuple[int, float], list[AsyncRedlockNode]] = {}
    for number, (state, _) in sorted(found.items(), key=lambda one: one[1][0] != COMPLETE):
        node, out = nodes.all[number], 0.0
        if state == NONE and forgot:
            out = max_ttl
        elif state == EARLIER and not await _durable(node, timeout):
            out = max(0.0, max_ttl - node.uptime())
        groups.setdefault((state, out), []).append(node)
    return groups


async def _durable(node: AsyncRedlockNode, timeout: float) -> bool:
    """Say whether this server has everything on disk that it ever answered."""
    try:
        found = await node.command("CONFIG", "GET", "append*", timeout=timeout)
    except EngineUnavailable:
        return False  # it may not say, and then it does not count
    settings = {
        str(name, "utf-8"): value for name, value in zip(found[::2], found[1::2], strict=True)
    }
    return settings.get("appendonly") == b"yes" and settings.get("appendfsync") == b"always"
