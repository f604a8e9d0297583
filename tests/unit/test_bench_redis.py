"""`holdfast bench floor redis redlock`: every row is there, and nothing that is missing ends it."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from click.testing import CliRunner

from holdfast.bench import contest, redis_floor, redlock_floor
from holdfast.bench.contest import Crew, Rounds
from holdfast.bench.floor import FLOORS, Row
from holdfast.bench.peers import redis_ones
from holdfast.bench.redis_peers import Pair, Peer
from holdfast.bench.redis_servers import addresses_of, on_servers
from holdfast.cli import main
from holdfast.testing.servers import RedisServer, ServerMissing, need, redis_program

SHORT = Rounds(1, 0.1, 0.2)
TINY = redis_floor.Sizes(2, 5, SHORT, 1_000, 1, 2, 20, 0.1)
TINY_REDLOCK = redlock_floor.Sizes(2, 5, 10, SHORT, 1, 2)


@pytest.fixture
def rare(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give a function that makes a module one that is not installed."""

    def forget(missing: str) -> None:
        def import_module(name: str) -> Any:
            if name == missing:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return importlib.import_module(name)

        monkeypatch.setattr(redis_ones, "import_module", import_module)

    return forget


def rows_of(plan: Sequence[Callable[[], list[Row]]]) -> dict[str, Row]:
    """Run all steps."""
    need(redis_program)
    return {row.what: row for step in plan for row in step()}


def test_redis() -> None:
    """A run has a figure for ours in every row, with the aims of the issue."""
    rows = rows_of(redis_floor.plan(TINY))
    assert {what: row.aim for what, row in rows.items()} == {
        "pair, sync / two bare scripts": 1.3,
        "redis-py Lock (no token, no queue) / two bare scripts": None,
        "python-redis-lock (no token, no queue) / two bare scripts": None,
        "hand-overs/s, 20 waiters / python-redis-lock": 1.5,
        "share max/min, 20 waiters": 1.2,
        "hand-overs/s, 100 waiters / python-redis-lock": 1.5,
        "share max/min, 100 waiters": 1.2,
        "server commands per hand-over, 1,000 / 10 waiters": 1.1,
        "calls inside scripts per hand-over, 1,000 / 10 waiters": 1.1,
        "pairs/s, 100 tasks, a key each / redis.asyncio's Lock": 3.0,
        "CPU for renewing 20 leases at ttl=30 s": 5.0,
    }
    assert not [row for row in rows.values() if math.isnan(row.value)]
    assert {row.at_least for what, row in rows.items() if "/s, " in what} == {True}
    assert {row.at_least for what, row in rows.items() if "/s, " not in what} == {False}


def test_redlock() -> None:
    """The same on five nodes, of which one or two stand still."""
    rows = rows_of(redlock_floor.plan(TINY_REDLOCK))
    assert {what: row.aim for what, row in rows.items()} == {
        "pair, sync / two bare scripts on 5 nodes": 1.3,
        "redlock-py (no token, no queue) / two bare scripts on 5 nodes": None,
        "pottery (no token, no queue) / two bare scripts on 5 nodes": None,
        "first pair, 1 of 5 stopped: time-outs more": 1.1,
        "later pairs, 1 of 5 stopped / none": 1.2,
        "first pair, 2 of 5 stopped: time-outs more": 1.1,
        "later pairs, 2 of 5 stopped / none": 1.2,
        "hand-overs/s, 20 waiters / redlock-py": 3.0,
        "share max/min, 20 waiters": 2.0,
        "pairs/s, 100 tasks, a key each, 5 nodes": None,
    }
    assert not [row for row in rows.values() if math.isnan(row.value)]


@pytest.mark.parametrize(
    ("value", "at_least", "met"),
    [
        *((1.0, False, True), (1.5, False, True), (2.0, False, False), (math.nan, False, False)),
        *((1.0, True, False), (1.5, True, True), (2.0, True, True), (math.nan, True, False)),
    ],
)
def test_aims_are_a_most_or_a_least(value: float, at_least: bool, met: bool) -> None:
    """What is as good as the aim or better meets it; no figure at all does not."""
    assert Row("x", value, "×", 1.5, at_least=at_least).met is met
    assert Row("x", value, "×", at_least=at_least).met is None


def test_the_table_judges_by_the_aim(monkeypatch: pytest.MonkeyPatch) -> None:
    """≤ and ≥, ok and MISSED; JSON has null for what is not a number."""
    rows = [
        *(Row("slower", 2.0, "×", 1.5), Row("faster", 2.0, "×", 1.5, at_least=True)),
        *(Row("rate", 12345.6, "/s"), Row("endless", math.inf, "×", 1.2)),
        Row("peer", math.nan, "", None, "is not installed here"),
    ]
    monkeypatch.setitem(FLOORS, "redis", lambda quick: [lambda: rows])
    lines = CliRunner().invoke(main, ["bench", "floor", "redis"]).stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["slower", "2×", "(aim", "≤", "1.5×)", "MISSED"],
        ["faster", "2×", "(aim", "≥", "1.5×)", "ok"],
        ["rate", "12,346/s"],
        ["endless", "inf×", "(aim", "≤", "1.2×)", "MISSED"],
        ["peer", "is", "not", "installed", "here"],
    ]
    printed = CliRunner().invoke(main, ["bench", "floor", "redis", "--json"]).stdout
    assert [row["value"] for row in json.loads(printed)] == [2.0, 2.0, 12345.6, None, None]


def test_a_missing_peer_is_reported(rare: Callable[[str], None]) -> None:
    """Its row says why it has no figure; the others have theirs."""
    rare("redis_lock")
    ours, redis_py, missing = rows_of(redis_floor.plan(TINY)[:1]).values()
    assert ours.value > 0
    assert redis_py.value > 0
    assert math.isnan(missing.value)
    assert missing.what.startswith("python-redis-lock")
    assert missing.note.startswith("is not installed here (redis_lock)")


def test_a_peer_that_fails_later_is_reported() -> None:
    """It is not asked again, and what it managed before does not count."""
    asked = 0

    def make(stack: ExitStack, addresses: Sequence[str]) -> Pair:
        def pair() -> None:
            nonlocal asked
            asked += 1
            if asked == 3:
                raise RuntimeError("no more")

        return pair

    peer = Peer("theirs", make, [])
    for _ in range(3):
        peer.repeated(2)()
    assert asked == 3
    row = peer.row("floor", [1.0], [1.0])
    assert math.isnan(row.value)
    assert row.note == "failed: RuntimeError: no more"


def test_a_crew_of_the_peer_that_fails_is_reported() -> None:
    """Ours still has its rate, in the note, and its share."""
    need(redis_program)
    with RedisServer() as server:
        where = addresses_of([server])
        rate, share = contest.contest(
            4, where, SHORT, peer="nobody's", least_rate=1.5, most_share=1.2
        )
    assert math.isnan(rate.value)
    assert rate.note.startswith("nobody's failed: KeyError: \"nobody's\"; ours: ")
    assert share.value >= 1


def test_a_crew_that_dies_says_so() -> None:
    """A killed process ends the round, not the run, and none is left behind."""
    need(redis_program)
    with RedisServer() as server:
        crew = Crew(contest.OURS, 4, addresses_of([server]))
        crew.run(SHORT)
        assert not crew.problem
        crew._processes[1].kill()
        crew._processes[1].wait()
        crew.run(SHORT)
        assert crew.problem
        crew.run(SHORT)
        crew.close()
    assert len(crew.rates) == 1
    assert all(process.poll() is not None for process in crew._processes)


def test_a_missing_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has no Redis here can still measure the other engines."""

    def missing() -> str:
        raise ServerMissing("redis-server is not installed: apt-get install redis-tools")

    monkeypatch.setattr("holdfast.testing.servers.redis.redis_program", missing)
    (row,) = on_servers("redis: pair", 1, lambda servers: [])
    assert math.isnan(row.value)
    assert row.note == "redis-server is not installed: apt-get install redis-tools"
