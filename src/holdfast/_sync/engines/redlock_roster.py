"""(Generated from _async/engines/redlock_roster.py by tools/unasync.py: do not edit.) The roster of a Redlock: how nodes that forgot are told from nodes that are new (S21).

Rule 1: every node that may grant has a roster; it is gone with the node's memory.
Rule 2: without any roster anywhere the whole Redlock is new, and works at once.
Rule 3: a node without one, while others have theirs, grants nothing for max_ttl: from its start if
        the others do not know its present run, else from now. By then every lock that it may have
        forgotten is over.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import NotSupported
from ...redis_record import load_script, micros
from .redlock_nodes import RedlockNode, RedlockNodes, Question, is_answer

ROSTER = load_script("roster", "hinting")
NONE, FORMING, COMPLETE = range(3)
TRIES = 3


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


def enrol(nodes: RedlockNodes, key: str, max_ttl: float, timeout: float) -> None:
    """Write rosters where they are missing; where that means that a node forgot, keep it out."""
    for _ in range(TRIES):
        found = _ask(nodes, Question(ROSTER, 1, key, "read"), timeout)
        if not any(state == COMPLETE for state, _ in found.values()):
            # Nobody grants yet. Each node is marked before any roster is complete, so that whoever
            # looks meanwhile can tell a node that is being enrolled from one that forgot.
            question = Question(ROSTER, 1, key, "form", until=_soon)
            found = _ask(nodes, question, timeout)
            if any(state == COMPLETE for state, _ in found.values()):
                continue
            found = dict.fromkeys(found, (FORMING, found[next(iter(found))][1]))
        _complete(nodes, key, max_ttl, timeout, found)
        return


def _soon(node: RedlockNode) -> int:
    return node.latest(1.0)


def _ask(
    nodes: RedlockNodes, question: Question, timeout: float
) -> dict[int, tuple[int, set[str]]]:
    """Return by node the state of its roster, and the runs that it knows."""
    answers = nodes.ask(question, timeout)
    found = {
        number: (int(answer[0]), {one.decode() for one in answer[2:]})
        for number, answer in enumerate(answers)
        if is_answer(answer)
    }
    if len(found) < nodes.quorum:
        raise nodes.missing(answers)
    return found


def _complete(
    nodes: RedlockNodes,
    key: str,
    max_ttl: float,
    timeout: float,
    found: dict[int, tuple[int, set[str]]],
) -> None:
    known = set[str]().union(*(runs for _, runs in found.values()))
    runs = [node.greeting.run_id for node in nodes.all if node.greeting.run_id]
    for number, (state, _) in found.items():
        if state == COMPLETE:
            continue
        node, out = nodes.all[number], 0.0
        if state == NONE:
            ran = 0.0 if node.greeting.run_id in known else node.uptime()
            out = max(0.0, max_ttl - ran)
        values = ("join", micros(max_ttl), len(nodes.all), micros(out), *runs)
        nodes.ask(Question(ROSTER, 1, key, *values), timeout, [node])
