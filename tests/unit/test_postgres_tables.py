"""The tables of the PostgreSQL engine do not grow with the names that were ever used (S19)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from holdfast.postgres_record import creation
from holdfast.testing.servers import PostgresServer, need, postgres_program

HOUR = 3_600_000_000  # microseconds
MINUTE = HOUR // 60
ROWS = 400  # that one sweep looks at
NAMES, ROUNDS = 100, 16


class Tables:
    """The functions, called by hand."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self.run("DROP SCHEMA IF EXISTS holdfast CASCADE")
        self.run(creation("holdfast"))

    def run(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        cursor = self._connection.execute(text.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def claim(self, name: str, owner: str, ttl: int = MINUTE) -> tuple[str, int]:
        """Claim a lock; return the answer and its number."""
        ((answer, _, number, *_),) = self.run(
            "SELECT * FROM holdfast.claim(%s, %s, 'lock', 0, 'X', '', %s, 0, '[]', true, "
            "9007199254740992)",
            name,
            owner,
            ttl,
        )
        return answer, number

    def release(self, name: str, owner: str) -> bool:
        """Release a lock."""
        ((held, _),) = self.run("SELECT * FROM holdfast.release(%s, %s, 0, 1000)", name, owner)
        return bool(held)

    def pass_time(self, micros: int) -> None:
        """Let all that is stored be that much older, tokens too."""
        self.run(
            "UPDATE holdfast.record SET floor = floor - %s, expires = expires - %s", *[micros] * 2
        )

    def fold(self) -> int:
        """Sweep once; return how many names were forgotten."""
        return int(self.run("SELECT holdfast.fold('', holdfast.micros())")[0][0])

    def names(self) -> list[str]:
        """Return all names that are remembered."""
        return [key for (key,) in self.run("SELECT key FROM holdfast.record ORDER BY key")]

    def floor(self) -> int:
        """Return the shared floor."""
        return int(self.run("SELECT floor FROM holdfast.folded")[0][0])

    def size(self) -> int:
        """Return the bytes of all tables and indexes."""
        rows = self.run(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace = 'holdfast'::regnamespace"
        )
        return int(rows[0][0])

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One server for all tests here."""
    with PostgresServer(need(postgres_program)) as server:
        yield server


@pytest.fixture
def tables(server: PostgresServer) -> Iterator[Tables]:
    """Fresh tables."""
    tables = Tables(server.url)
    yield tables
    tables.close()


def test_idle_names_are_folded(tables: Tables) -> None:
    """A name that nobody has used for a while is forgotten, and what comes later under it, or
    under any new name, has a larger token, whatever the clock says."""
    _, token = tables.claim("a", "one")
    assert tables.release("a", "one")
    assert tables.fold() == 0, "it may be wanted again soon"
    tables.run("UPDATE holdfast.folded SET swept = ''")
    tables.pass_time(HOUR)
    assert tables.fold() == 1
    assert tables.names() == []
    assert tables.floor() == token - HOUR
    tables.run("UPDATE holdfast.folded SET floor = %s", token + HOUR)  # as if the clock were behind
    assert tables.claim("a", "two") == ("granted", token + HOUR + 1)
    assert tables.claim("b", "three") == ("granted", token + HOUR + 1)


def test_what_is_in_use_is_not_folded(tables: Tables) -> None:
    """Held, waited for or freshly used names stay; those of holders that died long ago do not."""
    tables.claim("held", "one", 10 * HOUR)
    tables.claim("dead", "two")
    tables.claim("crowd", "three", 10 * HOUR)
    tables.claim("crowd", "four", 10 * HOUR)
    tables.run("UPDATE holdfast.record SET floor = floor - %s", HOUR)
    tables.run("UPDATE holdfast.record SET expires = expires - %s WHERE key = 'dead'", HOUR)
    tables.claim("fresh", "five")
    tables.release("fresh", "five")
    assert tables.fold() == 1
    assert tables.names() == ["crowd", "fresh", "held"]


def test_crowds_of_the_dead_are_folded(tables: Tables) -> None:
    """Permits whose holders never came back, and queues that a crash has emptied, go too."""
    for owner in ("one", "two"):
        tables.run(
            "SELECT * FROM holdfast.claim('s', %s, 'semaphore', 3, 'S', '', 1000000, 0, '[]', "
            "true, 9007199254740992)",
            owner,
        )
    tables.claim("q", "three")
    tables.claim("q", "four")
    assert tables.run("SELECT crowd FROM holdfast.record WHERE key = 's'") == [(2,)]
    tables.run("TRUNCATE holdfast.waiter")
    tables.pass_time(HOUR)
    tables.run("UPDATE holdfast.record SET soonest = soonest - %s", HOUR)
    tables.run("UPDATE holdfast.holder SET expires = expires - %s", HOUR)
    assert tables.fold() == 2
    assert tables.names() == []
    assert tables.run("SELECT * FROM holdfast.holder") == []


def test_sweeps_go_round(tables: Tables) -> None:
    """Each looks at the next few hundred rows only, and after the last begins anew."""
    tables.run(
        "INSERT INTO holdfast.record (key, floor) SELECT format('n/%%s', n), 1 "
        "FROM generate_series(1, %s) AS n",
        2 * ROWS + 50,
    )
    assert [tables.fold() for _ in range(5)] == [ROWS, ROWS, 50, 0, 0]


def test_new_names_replace_old_ones(tables: Tables) -> None:
    """However many names are used once, the table keeps those of the last minutes: whoever makes
    rows removes old ones, and never the one it is making."""
    tables.run("SELECT setseed(0.5)")
    for number in range(1500):
        name, owner = f"n/{number:05}", f"o{number}"
        assert tables.claim(name, owner)[0] == "granted"
        assert tables.release(name, owner)
        if number % 100 == 99:
            tables.pass_time(HOUR)
    assert len(tables.names()) < 900


def test_tombstones_do_not_pile_up(tables: Tables) -> None:
    """Now and then a new one removes many that are over."""
    for number in range(600):
        assert not tables.release("x", f"o{number}")
    assert len(tables.run("SELECT * FROM holdfast.tombstone")) < 200


def test_bloat_is_bounded(tables: Tables) -> None:
    """Names that are cycled many times, alone and with a queue, leave no dead rows behind that
    vacuum could not reuse: the second half of the work makes nothing larger."""
    sizes = []
    for turn in range(ROUNDS):
        for number in range(NAMES):
            name = f"n/{number}"
            first, second = f"a{turn}/{number}", f"b{turn}/{number}"
            tables.claim(name, first)
            if number % 4 == 0:
                tables.claim(name, second)
            assert tables.release(name, first)
            if number % 4 == 0:
                assert tables.release(name, second)
        tables.run("VACUUM holdfast.record, holdfast.waiter, holdfast.tombstone")
        sizes.append(tables.size())
    assert sizes[-1] <= 1.2 * sizes[ROUNDS // 2]
    assert len(tables.names()) == NAMES
    assert sizes[-1] < 3_000_000
