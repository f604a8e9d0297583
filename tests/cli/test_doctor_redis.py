"""The doctor on one Redis server: will it keep the locks that it has granted?"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest

import holdfast
from holdfast.doctor import Level, redis_server
from holdfast.doctor.redis_facts import Reading, ask
from holdfast.doctor.redis_server import (
    check_clock,
    check_kind,
    check_memory,
    check_persistence,
    check_replication,
)
from holdfast.testing.servers import RedisServer, need, redis_program, valkey_program
from holdfast.testing.servers.programs import faketime_library
from tests.cli.conftest import Commands, eventually
from tests.cli.redis_findings import all_findings, bad, facts, levels, node_of, own_findings

SAFE = {"appendonly": "yes", "appendfsync": "always"}


@pytest.fixture(autouse=True)
def program() -> str:
    """Redis itself: without it there is nothing to test."""
    return need(redis_program)


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """Give a test a server that keeps nothing."""
    with RedisServer() as running:
        yield running


@pytest.mark.parametrize("find", [redis_program, valkey_program])
def test_server_that_is_set_up_well(find: object, commands: Commands) -> None:
    """It has nothing that should be done; the password is nowhere in the report."""
    assert callable(find)
    with RedisServer(need(find), persist=True, options={"requirepass": "sesame"}) as server:
        commands.environment["HOLDFAST_URL"] = f"redis://:sesame@127.0.0.1:{server.port}/0"
        text = commands.do("doctor", "--json")
        assert "sesame" not in text
        report = json.loads(text)
        assert report["ok"] is True
        expected = {"encryption", "version", "rights", "messages", "eviction", "persistence"}
        assert expected | {"clock", "lock", "tokens"} <= {
            one["title"] for one in report["findings"]
        }
        remains = server.command("KEYS", "*")
        assert len(remains) == 1, "the floor of the lock that was taken, for a day"


def test_server_that_is_not_there(server: RedisServer) -> None:
    """That is said once, and by what all engines share."""
    server.kill()
    found = all_findings(server.url)
    assert bad(found) == ["reachable"]


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_eviction_is_critical_and_can_be_fixed(policy: str, commands: Commands) -> None:
    """Keys of locks have an expiry: each policy but noeviction removes them."""
    options = {"maxmemory": "100mb", "maxmemory-policy": policy, **SAFE}
    with RedisServer(options=options) as server:
        commands.environment["HOLDFAST_URL"] = server.url
        text = commands.do("doctor", code=1)
        assert "critical  eviction: redis://" in text
        assert "Fixed." in commands.do("doctor", "--fix")
        assert server.command("CONFIG", "GET", "maxmemory-policy")[1] == "noeviction"
        commands.do("doctor")


def test_fix_that_is_refused_is_not_called_fixed(server: RedisServer, commands: Commands) -> None:
    """Who may not set it is told so, and the finding stays."""
    server.command("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
    server.command("ACL", "SETUSER", "default", "-config|set")
    commands.environment["HOLDFAST_URL"] = server.url
    process = commands.start("doctor", "--fix")
    output, errors = commands.ended(process, code=1)
    assert "could not be fixed" in errors
    assert "critical  eviction" in output


def test_cache_of_somebody_else_is_not_touched(server: RedisServer) -> None:
    """A server that has evicted keys lives by that: no fix, but a server of their own for locks."""
    used = int(server.command("INFO", "memory").split("used_memory:")[1].split()[0])
    server.command("CONFIG", "SET", "maxmemory", used + 1_000_000)
    server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
    fill = "for i = 1, 20000 do redis.call('SET', i, string.rep('x', 100)) end"
    server.command("EVAL", fill, 0)
    server.command("SET", "one", "more")
    found = [one for one in own_findings(server.url) if one.title == "eviction"]
    assert [(one.level, one.fix) for one in found] == [(Level.CRITICAL, None)]


def test_memory_nearly_full(server: RedisServer) -> None:
    """Where nothing is evicted, a full server grants nothing: warned of before."""
    with holdfast.connect(server.url) as client:
        node = node_of(client)
        used = ask(node).number("used_memory")
        server.command("CONFIG", "SET", "maxmemory", int(used * 1.05))
        assert levels(check_memory(ask(node), node), "memory") == [Level.WARNING]
        server.command("CONFIG", "SET", "maxmemory", used * 10)
        assert levels(check_memory(ask(node), node), "memory") == []


def test_policy_without_a_limit(server: RedisServer) -> None:
    """It is harmless for now."""
    server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    assert levels(own_findings(server.url), "eviction") == [Level.INFO]


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({"appendonly": "yes", "appendfsync": "always"}, Level.OK),
        ({"appendonly": "yes", "appendfsync": "everysec"}, Level.INFO),
        ({"appendonly": "yes", "appendfsync": "no"}, Level.WARNING),
        ({"save": "900 1"}, Level.WARNING),
        ({}, Level.WARNING),
    ],
)
def test_persistence(options: dict[str, str], level: Level) -> None:
    """What a restart forgets two clients may hold, unless the server grants nothing after it."""
    with RedisServer(options=options) as server:
        assert levels(own_findings(server.url), "persistence") == [level]
        assert levels(own_findings(server.url, quarantine=True), "persistence") == [Level.OK]


def test_persistence_that_cannot_be_asked_for() -> None:
    """Without CONFIG nobody knows how often AOF is written: not bad, but not ok either."""
    found = check_persistence(facts({"aof_enabled": "1"}), quarantine=False)
    assert levels(found, "persistence") == [Level.INFO]


def test_disk_that_does_not_take_data() -> None:
    """A snapshot that failed is a warning: the server may refuse writes from then on."""
    with RedisServer(options={"save": "900 1"}) as server:
        shutil.rmtree(server.directory / "data")
        server.command("BGSAVE")
        eventually(lambda: "last_bgsave_status:err" in server.command("INFO", "persistence"))
        assert levels(own_findings(server.url), "disk") == [Level.WARNING]
        server.command("CONFIG", "SET", "save", "")  # or it does not want to end


def test_recent_restart(server: RedisServer) -> None:
    """Who held a lock before it may not know yet."""
    assert levels(own_findings(server.url), "restart") == [Level.INFO]
    assert levels(own_findings(server.url, quarantine=True), "restart") == []


def online(server: RedisServer, number: int) -> None:
    """Wait until so many replicas are up to date."""
    eventually(lambda: server.command("INFO", "replication").count("state=online") == number)


def test_replicas_that_confirm_nothing_or_all(server: RedisServer) -> None:
    """A failover forgets what had not reached the replica; with replicas=1 everything has."""
    with RedisServer(replica_of=server):
        online(server, 1)
        assert levels(own_findings(server.url), "replicas") == [Level.WARNING]
        assert levels(own_findings(server.url), "split brain") == [Level.INFO]
        found = all_findings(server.url, replicas=1)
        assert levels(found, "replicas") == [Level.OK]
        assert levels(found, "lock") == [Level.OK]
        server.command("CONFIG", "SET", "min-replicas-to-write", "1")
        assert levels(own_findings(server.url), "split brain") == []


def test_replicas_of_which_some_confirm(server: RedisServer) -> None:
    """One of the others may take over."""
    with RedisServer(replica_of=server), RedisServer(replica_of=server):
        online(server, 2)
        assert levels(own_findings(server.url, replicas=1), "replicas") == [Level.INFO]


def test_too_few_replicas(server: RedisServer) -> None:
    """No lock can be taken: because the client wants more, or the server does."""
    assert levels(own_findings(server.url, replicas=1), "replicas") == [Level.CRITICAL]
    server.command("CONFIG", "SET", "min-replicas-to-write", "1")
    assert levels(own_findings(server.url), "replicas") == [Level.CRITICAL]


def test_replica_that_is_behind(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that confirms nothing any more is named."""
    monkeypatch.setattr(redis_server, "LAG", 0)
    with RedisServer(replica_of=server) as replica:
        online(server, 1)
        replica.pause()
        eventually(lambda: ",lag=0" not in server.command("INFO", "replication"))
        lagging = [one for one in own_findings(server.url) if one.title == "lag"]
        assert [one.level for one in lagging] == [Level.WARNING]
        assert f"127.0.0.1:{replica.port}" in lagging[0].detail
        replica.resume()


def test_replica_that_still_copies() -> None:
    """It does not count as a replica yet."""
    line = "ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0"
    found = facts({"role": "master", "connected_slaves": "1", "slave0": line})
    seen = list(check_replication(found, wanted=1, instead=""))
    assert levels(seen, "lag") == [Level.WARNING]
    assert levels(seen, "replicas") == [Level.CRITICAL]


def test_replica_takes_no_locks(server: RedisServer) -> None:
    """Its role is the finding that explains the others."""
    with RedisServer(replica_of=server) as replica:
        online(server, 1)
        found = own_findings(replica.url)
        assert levels(found, "role") == [Level.CRITICAL]
        assert str(server.port) in next(one.detail for one in found if one.title == "role")


def test_member_of_a_cluster() -> None:
    """Refused, whatever else it can do."""
    with RedisServer(options={"cluster-enabled": "yes"}) as server:
        assert levels(own_findings(server.url), "cluster") == [Level.CRITICAL]
        server.command("CLUSTER", "ADDSLOTSRANGE", 0, 1)
        assert levels(own_findings(server.url), "cluster") == [Level.CRITICAL]


@pytest.mark.parametrize(
    ("said", "level"),
    [
        ({"redis_version": "4.0.14"}, Level.CRITICAL),
        ({"redis_version": "5.0.14"}, Level.INFO),
        ({"redis_version": "6.0.16"}, Level.INFO),
        ({"redis_version": "6.2.0"}, Level.OK),
        ({"redis_version": "7.2.4", "valkey_version": "9.1.2"}, Level.OK),
    ],
)
def test_versions(said: dict[str, str], level: Level) -> None:
    """From 5 on the scripts run; from 6.2 on there is nothing to say."""
    assert levels(check_kind(facts(said)), "version") == [level]


@pytest.mark.parametrize(("ahead", "level"), [(-0.05, Level.INFO), (2.0, Level.WARNING)])
def test_clock_that_is_off(ahead: float, level: Level) -> None:
    """A real clock beside ours."""
    need(faketime_library)
    with RedisServer(fake_clock=True) as server:
        assert levels(own_findings(server.url), "clock") == [Level.OK]
        server.step_clock(ahead)
        eventually(lambda: levels(own_findings(server.url), "clock") == [level])


def test_slow_answers_are_no_wrong_clock() -> None:
    """What may be the way there and back is not held against the clock."""
    assert levels(check_clock(Reading("x", 0.3, 0.295)), "clock") == [Level.OK]
    assert levels(check_clock(Reading("x", -0.3, 0.1)), "clock") == [Level.WARNING]


def test_holder_with_a_longer_ttl_than_we_allow(server: RedisServer) -> None:
    """Clients that disagree on max_ttl are noticed while one holds a lock."""
    with holdfast.connect(server.url) as other, other.lock("long", ttl=60):
        assert levels(own_findings(server.url, max_ttl=300), "max_ttl") == []
        found = own_findings(server.url, max_ttl=30)
        assert levels(found, "max_ttl") == [Level.INFO]
