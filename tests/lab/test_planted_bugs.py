"""The lab is worth what it catches: every planted bug is found, by the right checker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.lab.experiment import RECOVERY, Setup, conduct
from holdfast.lab.planting import VARIABLE
from tests.lab import planted
from tests.lab.test_engines import need_engine

ROOT = Path(__file__).resolve().parents[2]
BUDGET, SECONDS = 30.0, 4.0  # seconds of faults, in all and in one run
CREW = ("sync", "sync", "async")
# Short leases, so that much happens; who hangs is not waited for, nor what it leaves behind.
COMMON = {"crew": CREW, "ttl": 0.4, "quick": 0.5, "rush": 0.0, "patience": 15.0, "recovery": 1.0}
FREE = {"ttl": 6.0, "pace": 0.4, "quick": 0.9, "keys": tuple(f"orders/{n}" for n in range(12))}
FREE |= {"crew": ("sync", "async", "async", "async")}
RECOVERS = {"recovery": RECOVERY}  # who complains of what does not recover in time
REDLOCK = {"ttl": 1.0}  # a node has a twentieth of it to answer
SLOW = {"ttl": None}  # what the server can keep
FEW_LOCKS = {"keys": ("orders/1",), "quick": 0.0}  # all want the same, and keep it for a while
# More faults, and shorter ones: half_is_a_majority is found by two runs of three, not by one of
# four. Two locks: renew_as_set is found by five runs of nine, on one by seven of 18.
OFTEN = {"pace": 0.4}
TWO_LOCKS: dict[str, Any] = {"keys": ("orders/1", "orders/2"), "patience": 1.0}
TWO_LOCKS |= {"crew": ("sync",) * 2 + ("async",) * 4}
TASKS = ("async", "async", "async")

# The bug, the engine, the faults that bring it out, who must complain, how to set the run up.
BUGS: list[tuple[Callable[[], None], str, tuple[str, ...], str, dict[str, Any]]] = [
    (planted.release_without_owner_check, "redis", ("pause",), "E", {}),
    (planted.no_release_after_ambiguous_acquire, "redis", ("one-way",), "R", FREE),
    (planted.renew_as_set, "redis", ("cut",), "V", TWO_LOCKS | OFTEN),
    (planted.renew_revives_released, "redis", ("pause",), "R", {}),
    (planted.watchdog_dies, "redis", ("cut",), "L2", RECOVERS),
    (planted.deadline_from_reply, "redis", ("slow", "pause"), "E", {}),
    (planted.wall_clock_deadline, "redis", ("client-clock", "pause"), "E", {}),
    (planted.lost_is_reversible, "redis", ("block",), "L1", {"crew": TASKS}),
    (planted.connection_reused_after_time_out, "redis", ("server-pause",), "E", {}),
    (planted.fork_keeps_lease, "redis", ("fork",), "E", {}),
    (planted.counter_is_forgotten, "redis", ("pause",), "T", {}),
    (planted.half_is_a_majority, "redlock", ("cut",), "E", REDLOCK | FEW_LOCKS | OFTEN),
    (planted.redlock_without_floors, "redlock", ("pause",), "T", REDLOCK),
    (planted.waits_for_lost, "zookeeper", ("pause",), "E", SLOW),
    (planted.renewals_are_not_seen, "dynamodb", ("pause",), "E", SLOW | FEW_LOCKS),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "engine", "faults", "checker", "options"),
    BUGS,
    ids=[bug.__name__ for bug, *_ in BUGS],
)
def test_planted_bug_is_caught(
    bug: Callable[[], None],
    engine: str,
    faults: tuple[str, ...],
    checker: str,
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """Within 30 s of faults, the promise that the bug breaks is seen broken."""
    need_engine(engine)
    monkeypatch.setenv(VARIABLE, f"{bug.__module__}:{bug.__name__}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    others: set[str] = set()
    for seed in range(int(BUDGET / SECONDS)):
        report = conduct(Setup(engine, faults, seed, SECONDS, **{**COMMON, **options}))
        found = {verdict.promise for verdict in report.verdicts if verdict.violations}
        if checker in found:
            record_property("lab", f"caught {bug.__name__}: {checker} in run {seed + 1}")
            return
        others |= found
    pytest.fail(f"{bug.__doc__} {checker} stayed silent for {BUDGET:g} s; others: {others}")
