"""When a command is stopped and killed: pure."""

from __future__ import annotations

import pytest

from holdfast.cli.run.timetable import Timetable


def test_defaults_of_s32() -> None:
    """Grace is min(10, ttl/3); KILL comes max(0.2 s, ttl/20) before the deadline."""
    assert Timetable.make(30, None).grace == 10
    assert Timetable.make(6, None).grace == 2
    assert Timetable.make(30, None).margin == 1.5
    assert Timetable.make(2, None).margin == 0.2
    assert Timetable.make(30, None).term_at(100) == 90
    assert Timetable.make(30, None).kill_at(100) == 98.5


def test_term_is_never_after_kill() -> None:
    """Without grace both come at once."""
    times = Timetable.make(30, 0)
    assert times.term_at(100) == times.kill_at(100)


@pytest.mark.parametrize(
    ("ttl", "grace"), [(10, 6), (10, -1), (0.3, None), (float("nan"), None), (10, float("inf"))]
)
def test_what_leaves_no_time_to_renew_is_refused(ttl: float, grace: float | None) -> None:
    """A healthy lease must never come near its end."""
    with pytest.raises(ValueError, match="must be"):
        Timetable.make(ttl, grace)


@pytest.mark.parametrize("ttl", [0.4, 1, 2, 6, 30, 300])
def test_a_healthy_lease_is_left_alone(ttl: float) -> None:
    """When a renewal is due, a third of the TTL after the last, TERM is still far away."""
    times = Timetable.make(ttl, None)
    deadline = ttl * 0.99 - 0.002
    assert times.term_at(deadline) > ttl / 3 * 1.3
