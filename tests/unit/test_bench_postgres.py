"""`holdfast bench floor postgresql`: every row is there, and a missing server does not end it."""

from __future__ import annotations

import math

import pytest

from holdfast.bench import postgres_floor
from holdfast.bench.contest import Rounds
from holdfast.testing.servers import ServerMissing, need, postgres, postgres_program

TINY = postgres_floor.Sizes(2, 5, Rounds(1, 0.2, 0.5), 5)


def test_postgresql() -> None:
    """A run has a figure in every row, with the aims of the issue."""
    need(postgres_program)
    rows = {row.what: row for step in postgres_floor.plan(TINY) for row in step()}
    assert {what: row.aim for what, row in rows.items()} == {
        "pair, sync / two bare updates through psycopg": 1.25,
        "pair, async / two bare updates through psycopg": 1.25,
        "hand-overs/s, 20 waiters / polling": 5.0,
        "share max/min, 20 waiters": 1.2,
        "tables and indexes of 1,000 names, 5 / 1 cycles": 1.2,
    }
    assert not [row for row in rows.values() if math.isnan(row.value)]
    assert [what for what, row in rows.items() if row.at_least] == [
        "hand-overs/s, 20 waiters / polling"
    ]


def test_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PostgreSQL is not installed a row says so, and how to get it."""

    def missing() -> str:
        raise ServerMissing("postgres is not installed: apt-get install postgresql")

    monkeypatch.setattr(postgres, "postgres_program", missing)
    (row,) = postgres_floor.plan(TINY)[0]()
    assert math.isnan(row.value)
    assert "apt-get install" in row.note
