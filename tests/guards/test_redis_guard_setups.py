"""Which clients the Redis guard takes, and where its fences lie, also in a real cluster of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import redis.asyncio

from holdfast._async.guards.redis import AsyncRedisGuard
from holdfast._sync.guards.redis import RedisGuard
from holdfast.errors import StaleToken
from holdfast.fencing import Fence
from holdfast.guards.redis_scripts import base_key
from holdfast.testing.servers import RedisServer, need, redis_program
from tests.unit.waiting import until


def fence(token: int) -> Fence:
    return Fence(token, "test:locks")


def test_clients_that_no_guard_can_call() -> None:
    """A pipeline, a client of the other colour, something else: each is told in a sentence."""
    blocking, awaitable = redis.Redis(), redis.asyncio.Redis()
    for wrong in (blocking.pipeline(), awaitable.pipeline()):
        with pytest.raises(TypeError, match="not a pipeline"):
            RedisGuard(wrong)
        with pytest.raises(TypeError, match="not a pipeline"):
            AsyncRedisGuard(wrong)
    with pytest.raises(TypeError, match=r"use it with holdfast\.aio\.guards"):
        RedisGuard(awaitable)
    with pytest.raises(TypeError, match=r"use it with holdfast\.guards"):
        AsyncRedisGuard(blocking)
    with pytest.raises(TypeError, match="takes a client of redis-py, not str"):
        RedisGuard("redis://localhost")


RIGHTS = re.compile(r"`(\+[a-z][a-z+ ]*)`")


def test_least_rights() -> None:
    """What the page says a user needs is enough, and its keys are the only ones touched."""
    page = Path(__file__).resolve().parents[2] / "docs" / "guards" / "redis.md"
    (line,) = [text for text in page.read_text().split("\n\n") if text.startswith("**Rights.**")]
    rights = " ".join(RIGHTS.findall(line)).split()
    with RedisServer(need(redis_program)) as server:
        server.command("ACL", "SETUSER", "u", "on", ">p", "~holdfast:*", "~x", "+incr", *rights)
        with redis.Redis(port=server.port, username="u", password="p") as client:
            guard = RedisGuard(client)
            guard.begin("x", fence(1))
            assert guard.execute("x", fence(1), "INCR", "x") == 1
            assert guard.once("x", "return redis.call('INCR', KEYS[1])", ["x"]) == 2
            assert guard.once("x", "return redis.call('INCR', KEYS[1])", ["x"]) == 2
            guard.adopt("x", "else")
        assert server.command("MEMORY", "USAGE", "holdfast:{x}:fence") < 200


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisServer]:
    """A cluster of one server that has all slots: what is in two slots is refused all the same."""
    with RedisServer(need(redis_program), options={"cluster-enabled": "yes"}) as server:
        server.command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        until(lambda: "cluster_state:ok" in server.command("CLUSTER", "INFO"))
        yield server


@pytest.mark.parametrize("name", ["orders/99", "stock:{7}", "{a}b}", "x{y", "{{a}"])
def test_fence_lies_beside_the_key_of_its_name(cluster: RedisServer, name: str) -> None:
    """The key that is called like the resource can be written by the script that judges."""
    with redis.Redis(port=cluster.port) as client:
        guard = RedisGuard(client)
        guard.execute(name, fence(2), "SET", name, 1)
        assert guard.once(name, "return redis.call('INCR', KEYS[1])", [name]) == 2
        with pytest.raises(StaleToken):
            guard.execute(name, fence(1), "SET", name, 9)
        assert client.get(name) == b"2"


def test_names_do_not_collide() -> None:
    """Whatever braces a name has, no two names share a fence."""
    names = ["x", "{x}", "{{x}}", "x{", ":{x}", "{x", "x}", "{x}y", "x{y}", "{}"]
    assert len({base_key(name) for name in names}) == len(names)


def test_key_in_another_slot(cluster: RedisServer) -> None:
    """The server refuses it before anything is judged or written; `key` brings them together."""
    with redis.Redis(port=cluster.port) as client:
        client.flushall()
        with pytest.raises(redis.ResponseError, match="same slot"):
            RedisGuard(client).execute("orders/99", fence(1), "SET", "invoice", 1)
        assert client.keys() == []
        guard = RedisGuard(client, key=lambda resource: f"shop:{{invoice}}:{resource}")
        guard.execute("orders/99", fence(1), "SET", "invoice", 1)
        assert client.keys("shop:*") == [b"shop:{invoice}:orders/99:fence"]


def test_client_of_the_whole_cluster(cluster: RedisServer) -> None:
    """redis-py's cluster client finds the server by the keys, as for any script."""
    with redis.RedisCluster(host="127.0.0.1", port=cluster.port) as client:
        guard = RedisGuard(client)
        guard.begin("orders/5", fence(3))
        assert guard.execute("orders/5", fence(3), "INCR", "orders/5") == 1
        with pytest.raises(StaleToken):
            guard.execute("orders/5", fence(2), "INCR", "orders/5")
