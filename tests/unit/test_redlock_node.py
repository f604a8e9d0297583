"""One node of a Redlock as its client sees it: when to leave it alone, and what it is owed."""

from __future__ import annotations

import math
from typing import Any

from holdfast._sync.engines.redlock_node import AWAY_FIRST, AWAY_MOST, OWED_MOST, RedlockNode
from holdfast._sync.engines.redlock_nodes import RedlockNodes
from holdfast._sync.engines.redlock_question import Inquiry
from holdfast.redis_link import from_url
from holdfast.server_clock import FOR_EVER, ServerClock

SILENCE = OSError("no answer")


def make_node() -> RedlockNode:
    return RedlockNode(from_url("redis://a"), lambda: 0.0, max_ttl=300.0, on_clock_step="tell")


def owed(until: float, *spared: int) -> Inquiry:
    question: Any = object()
    return Inquiry(question, (), 0.05, 0.0, until, spared)


def make_nodes(count: int = 5) -> RedlockNodes:
    settings = [from_url(f"redis://h{number}") for number in range(count)]
    nodes = RedlockNodes(settings, lambda: 0.0, 3, max_ttl=300.0, on_clock_step="tell")
    nodes.node_timeout = 0.05
    return nodes


# --- Being left alone. ---


def test_a_silent_node_is_left_alone_for_a_growing_while() -> None:
    """The while doubles with every failure after it, up to a limit; an answer ends it."""
    node, now, waits = make_node(), 100.0, []
    for _ in range(8):
        node.failed(now, SILENCE, 0.05)
        wait = next(step / 100 for step in range(1000) if not node.away(now + step / 100))
        waits.append(wait)
        now += wait
    assert waits[:4] == [AWAY_FIRST, 2 * AWAY_FIRST, 4 * AWAY_FIRST, 8 * AWAY_FIRST]
    assert max(waits) == AWAY_MOST
    node.failed(now, SILENCE, 0.05)
    node.answered()
    assert not node.away(now)
    node.failed(now, SILENCE, 0.05)
    assert not node.away(now + AWAY_FIRST)


def test_many_who_ask_at_the_same_time_count_once() -> None:
    """A hundred tasks that all had no answer in one outage are one failure, but all are counted."""
    node = make_node()
    for _ in range(100):
        node.failed(5.0, SILENCE, 0.05)
    assert node.errors == 100
    assert node.away(5.0)
    assert not node.away(5.0 + AWAY_FIRST)


def test_who_is_more_patient_asks_all_the_same() -> None:
    """A node that was too slow for a hurried request is not silent for others; but nobody waits
    again for one that has had all the time a node has."""
    nodes = make_nodes()
    slow = nodes.all[2]
    slow.failed(0.0, SILENCE, 0.005)
    assert slow not in nodes.likely(nodes.all, 0.005)
    assert slow in nodes.likely(nodes.all, 0.05)
    slow.failed(0.0, SILENCE, 0.05)
    assert slow not in nodes.likely(nodes.all, 0.05)
    assert slow not in nodes.likely(nodes.all, 5.0)


def test_all_are_asked_when_a_majority_needs_them() -> None:
    """Nodes that are better left alone are asked all the same, unless a few are enough."""
    nodes = make_nodes()
    for node in nodes.all[:2]:
        node.failed(0.0, SILENCE, 0.05)
    assert nodes.likely(nodes.all, 0.05) == nodes.all[2:]
    nodes.all[2].failed(0.0, SILENCE, 0.05)
    assert nodes.likely(nodes.all, 0.05) == nodes.all
    assert nodes.likely(nodes.all, 0.05, few=True) == nodes.all[3:]


# --- Debts. ---


def test_debts_are_paid_the_latest_first_and_expire() -> None:
    """What matters most is what happened last; what is over is never told."""
    node = make_node()
    debts = [owed(until) for until in (10.0, 20.0, 30.0)]
    assert all(node.owe(debt) for debt in debts)
    assert node.troubled
    assert node.debt(15.0) is debts[2]
    assert node.debt(15.0) is debts[1]
    assert node.debt(15.0) is None


def test_what_a_node_need_not_know_is_not_owed() -> None:
    """Neither a question without consequences, nor the end of what it never heard of."""
    node = make_node()
    assert not node.owe(owed(-math.inf))
    assert not node.owe(owed(10.0, node.number))
    assert node.debt(0.0) is None


def test_debts_are_bounded() -> None:
    """A node that is away for long is owed only the latest."""
    node = make_node()
    debts = [owed(10.0) for _ in range(OWED_MOST + 5)]
    for debt in debts:
        node.owe(debt)
    assert [*iter(lambda: node.debt(0.0), None)] == debts[:4:-1]


# --- Its clock. ---


def test_a_slow_answer_does_not_blur_what_a_quick_one_told() -> None:
    """The bounds of a clock are those of the quickest answer, give or take the drift."""
    clock = ServerClock()
    assert clock.latest(0.0) == FOR_EVER
    clock.observe(10.0, 10.001, 1_000_010_000_500)  # it is 1,000,000 s ahead, within 1 ms
    for sent, received, theirs in ((11.0, 16.0, 11.1), (20.0, 25.0, 24.9)):
        assert clock.observe(sent, received, int((1_000_000 + theirs) * 1e6)) == 0.0
        assert abs(clock.middle(0.0) - 1_000_000) < 0.02
        assert abs(clock.latest(received) - (1_000_000 + received) * 1e6) < 30_000


def test_a_clock_that_was_set_is_learnt_anew() -> None:
    """A step is told, with its sign; a smaller one is believed without a word."""
    for step, told in ((3600.0, True), (-3600.0, True), (0.05, False), (-0.05, False)):
        clock = ServerClock()
        clock.observe(10.0, 10.001, 1_000_010_000_500)
        found = clock.observe(20.0, 20.001, int((1_000_020.0005 + step) * 1e6))
        assert found == 0.0 or abs(found - step) < 0.02
        assert bool(found) is told
        assert abs(clock.middle(0.0) - 1_000_000 - step) < 0.002
