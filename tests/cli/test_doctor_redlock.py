"""The doctor on a Redlock: each node for itself, and all of them against each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import holdfast
from holdfast.doctor import Finding, Level, Patient, examine
from holdfast.doctor.redis_facts import Node, Reading
from holdfast.doctor.redlock import (
    Roster,
    check_clocks,
    check_majority,
    check_nodes,
    check_number,
    check_remembers,
    check_roster,
)
from holdfast.testing.servers import RedisServer, need, redis_program
from holdfast.testing.servers.programs import faketime_library
from tests.cli.conftest import Commands, eventually
from tests.cli.redis_findings import bad, complete, facts, levels, node_of


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Close what a test opens."""
    with ExitStack() as opened:
        yield opened


def servers(stack: ExitStack, number: int, **options: object) -> list[RedisServer]:
    """Start servers that know nothing of each other."""
    program = need(redis_program)
    return [stack.enter_context(RedisServer(program, **options)) for _ in range(number)]  # type: ignore[arg-type]


def nodes(stack: ExitStack, *urls: str) -> list[Node]:
    """Return them as an engine has them."""
    return [node_of(stack.enter_context(holdfast.connect(url))) for url in urls]


def look(them: list[Node]) -> list[Finding]:
    """Return what is found."""
    return complete(check_nodes(them, "holdfast"))


def test_nodes_that_are_set_up_well(stack: ExitStack) -> None:
    """Nothing to be done, and what is the same on all is said once."""
    them = nodes(stack, *(server.url for server in servers(stack, 3)))
    found = look(them)
    assert bad(found) == []
    assert levels(found, "persistence") == [Level.INFO]
    shared = [one.detail for one in found if one.title in ("version", "rights", "eviction")]
    assert len(shared) == 3
    assert all(detail.startswith("Each node ") for detail in shared)
    assert levels(found, "duplicates") == [Level.OK]
    assert levels(found, "clocks") == [Level.OK]


def test_what_is_wrong_on_one_node_names_it(stack: ExitStack) -> None:
    """One evicts, one has a replica: each is named; a fix is for that one only."""
    first, second, third = servers(stack, 3)
    first.command("CONFIG", "SET", "maxmemory", "100mb")
    first.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    stack.enter_context(RedisServer(replica_of=second))
    eventually(lambda: "state=online" in second.command("INFO", "replication"))
    found = look(nodes(stack, first.url, second.url, third.url))
    eviction = [one for one in found if one.title == "eviction" and one.level.bad]
    assert [one.detail.split()[0] for one in eviction] == [first.url]
    replicas = [one for one in found if one.title == "replicas"]
    assert [(one.level, one.detail.split()[0]) for one in replicas] == [(Level.WARNING, second.url)]


def test_what_is_wrong_on_all_nodes_is_fixed_on_all(stack: ExitStack) -> None:
    """One finding, one fix, for each of them."""
    options = {"maxmemory": "100mb", "maxmemory-policy": "volatile-lru"}
    them = servers(stack, 3, options=options)
    found = [one for one in look(nodes(stack, *(one.url for one in them))) if one.fix]
    assert [one.detail.split(" removes")[0] for one in found] == ["Each node"]
    assert found[0].fix
    found[0].fix()
    policies = [server.command("CONFIG", "GET", "maxmemory-policy")[1] for server in them]
    assert policies == ["noeviction"] * 3


@pytest.mark.parametrize(
    ("config", "info", "level"),
    [
        ({"appendfsync": "always"}, "1", Level.OK),
        ({"appendfsync": "everysec"}, "1", Level.WARNING),
        ({"save": "3600 1"}, "0", Level.WARNING),
        ({"save": ""}, "0", Level.INFO),
    ],
)
def test_nodes_that_remember_a_part(config: dict[str, str], info: str, level: Level) -> None:
    """All or nothing: a node that comes back with an old copy does not know what is missing."""
    assert levels(check_remembers(facts({"aof_enabled": info}, config)), "persistence") == [level]


def test_nodes_that_are_down(stack: ExitStack) -> None:
    """A minority is a warning, a majority critical; the others are examined all the same."""
    them = servers(stack, 3)
    known = nodes(stack, *(server.url for server in them))
    them[0].kill()
    found = look(known)
    assert levels(found, "nodes") == [Level.OK, Level.WARNING]
    assert levels(found, "version") == [Level.OK]
    them[1].kill()
    assert levels(look(known), "nodes") == [Level.OK, Level.CRITICAL, Level.CRITICAL]
    them[2].kill()
    assert levels(look(known), "nodes")[1:] == [Level.CRITICAL] * 3


def test_one_server_under_two_names(stack: ExitStack) -> None:
    """It would vote twice."""
    first, second = servers(stack, 2)
    again = f"redis://localhost:{first.port}/0"
    found = look(nodes(stack, first.url, second.url, again))
    assert levels(found, "duplicates") == [Level.CRITICAL]


def test_even_number() -> None:
    """Four survive no more than three."""
    assert levels(check_number(3, 2), "nodes") == [Level.OK]
    assert levels(check_number(4, 3), "nodes") == [Level.WARNING]
    assert levels(check_number(5, 3), "nodes") == [Level.OK]


def test_raised_quorum() -> None:
    """With quorum=5 none of five may be down."""
    assert levels(check_majority(5, 3, {"one": "x"}), "nodes") == [Level.WARNING]
    assert levels(check_majority(5, 5, {"one": "x"}), "nodes") == [Level.CRITICAL]


@pytest.mark.parametrize(("ahead", "level"), [(0.05, Level.WARNING), (2.0, Level.CRITICAL)])
def test_clocks_that_disagree(stack: ExitStack, ahead: float, level: Level) -> None:
    """Real clocks, of which one is wrong."""
    need(faketime_library)
    them = servers(stack, 3, fake_clock=True)
    known = nodes(stack, *(server.url for server in them))
    them[1].step_clock(ahead)
    eventually(lambda: levels(look(known), "clocks") == [level])


def test_clocks_that_may_agree() -> None:
    """What may be the way to the nodes is not held against their clocks."""
    readings = [Reading("a", 0.0, 0.1), Reading("b", 0.2, 0.1)]
    assert levels(check_clocks(readings), "clocks") == [Level.OK]
    assert levels(check_clocks(readings[:1]), "clocks") == []


def test_rosters() -> None:
    """Clients that were set up differently are critical; a node that forgot is kept out."""
    roster = Roster(300.0, 3, 0.0)
    assert levels(check_roster("a", roster, max_ttl=300.0, nodes=3), "roster") == []
    assert levels(check_roster("a", roster, max_ttl=60.0, nodes=3), "roster") == [Level.CRITICAL]
    assert levels(check_roster("a", roster, max_ttl=300.0, nodes=5), "roster") == [Level.CRITICAL]
    forgot = Roster(300.0, 3, 12.0)
    assert levels(check_roster("a", forgot, max_ttl=300.0, nodes=3), "roster") == [Level.WARNING]


def test_whole_examination(stack: ExitStack, commands: Commands) -> None:
    """The command, on a real Redlock: well set up, with another max_ttl, and after a restart."""
    them = servers(stack, 3, persist=True)
    url = "redlock://" + ",".join(f"127.0.0.1:{server.port}" for server in them)
    report = json.loads(commands.do("doctor", "--json", "--url", url))
    assert report["ok"] is True
    found = complete(examined(stack, url, max_ttl=60))
    rosters = [one for one in found if one.title == "roster"]
    assert [(one.level, one.detail[:9]) for one in rosters] == [(Level.CRITICAL, "Each node")]
    them[1].restart(keep_data=False)
    assert levels(examined(stack, url), "roster") == []
    assert levels(examined(stack, url), "roster") == [Level.WARNING], "kept out since it is known"


def examined(stack: ExitStack, url: str, **options: float) -> Iterator[Finding]:
    """Examine a Redlock with its own engine."""
    client = stack.enter_context(holdfast.connect(url, **options))  # type: ignore[arg-type]
    return examine(Patient(client))
