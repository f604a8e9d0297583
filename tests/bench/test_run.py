"""Real runs of the comparison, as short as can be: figures, and what cannot run."""

from __future__ import annotations

import math
from typing import Any

import pytest

from holdfast.bench import peers
from holdfast.bench.compare import grounds, run, stage
from holdfast.bench.compare.crew import AnyContestant, Crew
from holdfast.bench.compare.document import Document, Row, faults
from holdfast.bench.compare.load import Load
from holdfast.bench.compare.ours import Ours
from holdfast.bench.compare.rounds import take_turns
from holdfast.bench.compare.run import compare, settings_for
from holdfast.bench.compare.sample import Sample
from holdfast.bench.compare.steps import plan
from holdfast.bench.contestant import Place
from holdfast.testing.servers import RedisServer, ServerMissing, need, redis_program
from tests.bench.broken_peers import Dies, NotInstalled, Raises

BROKEN = "cannot run: "


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let steps be over at once, and leave out those that take seconds by nature."""
    slow = ("renewal", "holder killed", "mix", "open loop", "request")
    monkeypatch.setattr(
        run, "plan", lambda settings: [one for one in plan(settings) if one.scenario not in slow]
    )


def rows_of(document: Document, scenario: str) -> dict[str, Row]:
    """Return the rows of a scenario by contestant."""
    return {row["contestant"]: row for row in document["rows"] if row["scenario"] == scenario}


def test_sqlite() -> None:
    """Every step of an engine without a server has a figure of ours; the document is valid."""
    document = compare(settings_for(["sqlite"], quick=True, seconds=6))
    assert faults(document) == []
    problems = {row["problem"] for row in document["rows"]} - {""}
    assert problems <= {f"{BROKEN}{run.TIME_IS_UP}"}  # of a very slow machine
    pair = rows_of(document, "pair")
    assert set(pair) == {"holdfast", "two bare statements"}
    for row in pair.values():
        figures = row["figures"]
        times = [figures[f"acquire {name}"] for name in ("p50", "p90", "p99", "p99.9")]
        assert all(one is not None and one > 0 for one in times)
        assert times == sorted(times, key=lambda one: one or 0)
    assert document["ratios"][0]["figure"] == "pair p50"
    assert document["machine"]["cores"] >= 1
    assert document["servers"]["sqlite"]


def test_redis_with_peers(short: None) -> None:
    """Ours, the floor and two peers have figures in the same rows, and ratios between them."""
    need(redis_program)
    document = compare(settings_for(["redis"], peers=True, quick=True, seconds=8))
    pair, hot = rows_of(document, "pair"), rows_of(document, "hot key")
    assert set(pair) == {"holdfast", "two bare scripts", "redis-py Lock", "python-redis-lock"}
    assert not [row["problem"] for row in pair.values() if row["problem"]]
    assert {ratio["contestant"] for ratio in document["ratios"]} >= set(pair) - {"holdfast"}
    ours = hot["holdfast"]["figures"]
    if not hot["holdfast"]["problem"]:
        assert ours["at once"] == 0
        assert (ours["fairness"] or math.inf) >= 1
        assert ours["contended/free"] is not None
    trips = rows_of(document, "round trips")
    if not trips["holdfast"]["problem"]:
        assert trips["holdfast"]["figures"]["requests/pair"] == pytest.approx(2, abs=0.3)


def test_a_peer_that_cannot_run_says_why(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not installed, raising, taking its process along: the others have their figures."""
    monkeypatch.setitem(peers.PEERS, "sqlite", (NotInstalled, Raises, Dies))
    monkeypatch.setattr(stage, "QUICK_PEERS", 3)
    document = compare(settings_for(["sqlite"], peers=True, quick=True, seconds=4))
    pair = rows_of(document, "pair")
    why = {name: row["problem"].removeprefix(BROKEN) for name, row in pair.items()}
    assert why["not installed"] == "is not installed here (no_such_package_at_all)"
    assert why["raises"] == "failed: RuntimeError: this store is too old"
    assert why["dies"] == "failed: its process ended with code 3"
    assert why["holdfast"] == why["two bare statements"] == ""
    assert {ratio["contestant"] for ratio in document["ratios"]} == {"two bare statements"}


def test_a_server_that_is_stopped_half_way_is_reported(
    short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows before it have figures, rows after it say which server is gone, the next engine runs."""
    need(redis_program)
    started: list[RedisServer] = []
    start = grounds.redis_ground

    def remember(*arguments: object) -> grounds.Ground:
        ground = start(*arguments)  # type: ignore[arg-type]
        started.extend(one for one in ground.servers if isinstance(one, RedisServer))
        return ground

    monkeypatch.setattr(grounds, "redis_ground", remember)
    told: list[str] = []

    def tell(share: float, what: str, left: float) -> None:
        told.append(what)
        if what == "redis: a key each, 10 threads":
            started[0].kill()

    settings = settings_for(["redis", "memory"], quick=True, seconds=6)
    document = compare(settings, tell)
    assert faults(document) == []
    redis = [row for row in document["rows"] if row["engine"] == "redis"]
    assert all(not row["problem"] for row in redis if row["scenario"] == "pair")
    later = [row for row in redis if row["scenario"] != "pair"]
    assert later
    assert all("redis server on port" in row["problem"] for row in later)
    assert all(row["problem"].endswith("has ended") for row in later)
    memory = [row for row in document["rows"] if row["engine"] == "memory"]
    assert not memory[0]["problem"]


def test_a_missing_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row of that engine says how to install it."""

    def missing(stack: object) -> grounds.Ground:
        raise ServerMissing("etcd is not installed: apt-get install etcd-server")

    monkeypatch.setitem(grounds.GROUNDS, "etcd", missing)
    document = compare(settings_for(["etcd"], quick=True, seconds=5))
    assert {row["problem"] for row in document["rows"]} == {
        f"{BROKEN}etcd is not installed: apt-get install etcd-server"
    }
    assert faults(document) == []


def test_the_time_is_kept() -> None:
    """A run that has no time left says so in its rows, and starts no more servers."""
    document = compare(settings_for(["memory", "etcd"], quick=True, seconds=1e-6))
    assert document["rows"]
    assert {row["problem"] for row in document["rows"]} == {f"{BROKEN}{run.TIME_IS_UP}"}


def test_every_latency_that_is_asked_for_has_a_ratio() -> None:
    """No row on which ours could be behind a peer is left without one, however much it varies."""
    bare = {step.scenario for step in plan(settings_for(peers=True)) if not step.ratios}
    assert bare == {"renewal"}  # no peer is measured there
    hot = next(step for step in plan(settings_for()) if step.scenario == "hot key")
    assert hot.ratios == ("hand-overs/s", "hand-over p50")


def test_every_engine_has_all_that_was_asked_for() -> None:
    """The plan of a full run has the loads of the issue, and those of Redlock."""
    steps = plan(settings_for(peers=True))
    assert {step.engine for step in steps} == set(grounds.GROUNDS) == set(peers.PEERS)
    of_redlock = {step.label for step in steps if step.engine == "redlock"}
    assert of_redlock >= {
        *("3 nodes", "5 nodes", "7 nodes", "5 nodes, 2 of them dead", "1 of 5 nodes killed"),
        *("5 nodes, 100 clients in processes", "uncontended pair", "requests per pair"),
        *("one key, 100 clients", "a key each, 100 tasks", "a key each, 10 clients in processes"),
    }
    assert {step.scenario for step in steps if step.engine == "etcd"} == {
        "node killed",
        *("pair", "own keys", "hot key", "mix", "open loop", "request", "round trips"),
        *("renewal", "holder killed"),
    }


class Counting(Crew):
    """A crew that counts its rounds."""

    def __init__(self) -> None:
        super().__init__(1)
        self.loads: list[Load] = []

    def run(self, kind: AnyContestant, place: Place, load: Load, *rest: Any, **more: Any) -> Sample:
        """Count, and do so."""
        self.loads.append(load)
        return super().run(kind, place, load, *rest, **more)


def test_halves_are_measured_by_processes_of_their_own() -> None:
    """Even rounds have one crew and odd ones another, or a process that is slower than its twin
    would be taken for its contestant; a crowd is there only once."""
    settings = settings_for(["sqlite"], seconds=1)
    with grounds.ground_of("sqlite") as ground, Counting() as one, Counting() as other:
        both = stage.Stage(settings, ground, one, other)
        (result,) = take_turns(both, [Ours], Load(), 1.0)
        rounds = [[load for load in crew.loads if load.turns is None] for crew in (one, other)]
        assert len(rounds[0]) + len(rounds[1]) == len(result.samples)
        assert 0 <= len(rounds[0]) - len(rounds[1]) <= 1
        assert both.crews(Load(clients=100)) == [one, one]
