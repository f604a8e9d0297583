"""Cores that are kept awake, and by whom."""

from __future__ import annotations

import os
import time

import pytest

from holdfast.bench import cores


@pytest.mark.skipif(
    not hasattr(os, "SCHED_IDLE"), reason="only Linux can run without being in the way"
)
def test_whoever_keeps_cores_awake_is_in_nobodys_way() -> None:
    """One process per core, of the lowest priority there is; they end with the measurement."""
    before = set(cores.offspring(os.getpid()))
    with cores.awake():
        spinners = set(cores.offspring(os.getpid())) - before
        assert len(spinners) == len(os.sched_getaffinity(0))
        limit = time.monotonic() + 30
        while {os.sched_getscheduler(one) for one in spinners} != {os.SCHED_IDLE}:
            assert time.monotonic() < limit
            time.sleep(0.01)
    assert not spinners & set(cores.offspring(os.getpid()))
