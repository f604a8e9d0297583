"""Bugs that the lab has found in engines: each in a few lines, so that it stays away."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import holdfast
from holdfast._sync.engines import sqlite
from holdfast.clocks import wall_micros as right
from holdfast.model import Grant


@pytest.mark.parametrize("how", ["locks", "renew"])
def test_sqlite_tokens_rise_whoever_lets_a_waiter_in(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client whose clock is right finds that a holder is over whose token was numbered by a clock
    an hour ahead: whoever it lets in gets a higher token all the same (client-clock, T)."""
    url = f"sqlite://{tmp_path}/locks.db"
    ahead, looking = holdfast.connect(url, ttl=0.2), holdfast.connect(url)
    with ahead, looking, holdfast.connect(url, ttl=30) as waiting:
        monkeypatch.setattr(sqlite, "wall_micros", lambda: right() + 3600 * 10**6)
        first = ahead.lock("x").acquire()
        assert first is not None
        monkeypatch.setattr(sqlite, "wall_micros", right)
        ahead._runtime.renewer._stopping = True  # as if its process stood still
        claim = first._claim
        assert first.lost.wait(10)
        time.sleep(0.05)  # a holder counts on a little less than its TTL: now that is over too
        queued = waiting.engine.claim(
            claim._replace(owner="0" * 32, ttl=30.0, queue=True, label="waiter"), 5.0
        )
        if not isinstance(queued, Grant):
            if how == "locks":
                looking.locks()
            else:
                looking.engine.renew([claim], 5.0)
        (holder,) = looking.inspect("x").holders
        assert holder.token is not None
        assert holder.token > first.token
