"""(Generated from _async/test_redis_sentinel.py by tools/unasync.py: do not edit.) Redis through Sentinel: the master that it names is used, and a failover is followed."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import pytest
import redis.asyncio.sentinel
import redis.sentinel

import holdfast
from holdfast.names import encode, record_key
from holdfast.testing import Harness
from holdfast.testing._sync.conformance.base import Base
from holdfast.testing.running import elapsed
from holdfast.testing.servers import RedisSentinel, RedisServer, need, redis_program

HOST = "127.0.0.1"
SECRET = "hush-hush"
SERVICE = "boss"
TTL = 5  # outlasts a failover, which takes one to two seconds, and a time-out before it is noticed


class SentinelHarness(Harness):
    """A master, its replica, and a Sentinel that watches both."""

    master: RedisServer
    replica: RedisServer
    sentinel: RedisSentinel

    def __init__(self) -> None:
        self._stack = ExitStack()

    def start(self) -> None:
        """Start them, and wait until each knows the others."""
        program = need(redis_program)
        options = {"requirepass": SECRET, "masterauth": SECRET}
        with ExitStack() as stack:
            self.master = stack.enter_context(RedisServer(program, options=options))
            replica = RedisServer(program, options=options, replica_of=self.master)
            self.replica = stack.enter_context(replica)
            self.sentinel = stack.enter_context(RedisSentinel(self.master, SERVICE))
            self._stack = stack.pop_all()
        end = time.monotonic() + self.patience
        while not self._ready():
            assert time.monotonic() < end, "they do not find each other"
            time.sleep(0.02)
        self.url = f"redis+sentinel://:{SECRET}@{HOST}:{self.sentinel.port}/{SERVICE}"

    def _ready(self) -> bool:
        up = "master_link_status:up" in self.replica.command("INFO", "replication")
        return up and bool(self.sentinel.command("SENTINEL", "REPLICAS", SERVICE))

    def stop(self) -> None:
        """Stop them all."""
        self._stack.close()


class SentinelSuite(Base):
    """What these tests share."""

    harness: ClassVar[SentinelHarness]

    def cycle(self, client: holdfast.Client) -> int:
        """Acquire and release once; return the token."""
        lease = self.take(client.lock("x"))
        assert lease.release() is True
        return lease.token

    def reach(self, where: object, **options: Any) -> holdfast.Client:
        """Return a client of whatever `where` names, closed at the end of the test."""
        client = holdfast.connect(where, namespace=self.namespace, **options)
        self._clients.append(client)
        return client

    def floor(self, server: RedisServer) -> int:
        """Return the highest token of "x" that a server knows, 0 for none."""
        key = "{" + record_key(self.namespace, encode("x")) + "}"
        return int(server.command("HGET", key, "f") or 0)


class TestSentinel(SentinelSuite):
    """Finding the master."""

    harness = SentinelHarness()

    def test_url(self) -> None:
        """The master is asked for at Sentinel; where we are is shown without the password."""
        token = self.cycle(self.client)
        assert self.floor(self.harness.master) == token
        port = self.harness.sentinel.port
        assert self.client.engine.location == f"redis+sentinel://{HOST}:{port}/{SERVICE}/0"
        assert SECRET not in repr(self.client)

    @pytest.mark.parametrize("module", [redis.sentinel, redis.asyncio.sentinel])
    def test_client_of_redis_py(self, module: Any) -> None:
        """What master_for() gives keeps asking Sentinel, and logs in as it would."""
        known = [(HOST, self.harness.sentinel.port)]
        lent = module.Sentinel(known, password=SECRET).master_for(SERVICE, db=2)
        client = self.reach(lent)
        assert client.engine.location == f"redis+sentinel://{SERVICE}/2"
        self.cycle(client)
        assert self.floor(self.harness.master) == 0, "that is database 0"

    @pytest.mark.parametrize("how", ["gone", "silent"])
    def test_other_sentinels_are_asked(self, how: str) -> None:
        """One that is gone, or does not answer, costs a second at most: the next one is asked."""
        with silent_port() as port:
            first = 1 if how == "gone" else port
            where = f"{HOST}:{first},{HOST}:{self.harness.sentinel.port}"
            client = self.reach(f"redis+sentinel://:{SECRET}@{where}/{SERVICE}")
            started = time.monotonic()
            client.ping()
            assert elapsed(started) < 5
            self.cycle(client)

    @pytest.mark.parametrize("where", ["service", "sentinel"])
    def test_no_master(self, where: str) -> None:
        """An unknown service, or no Sentinel at all, is EngineUnavailable in one sentence."""
        port = self.harness.sentinel.port if where == "service" else 1
        client = self.reach(f"redis+sentinel://{HOST}:{port}/nobody", connect_timeout=0.5)
        for call in (client.ping, client.lock("x").try_acquire):
            error = self.raises(holdfast.EngineUnavailable, call)
            assert "names no master for 'nobody'" in str(error)


class Failover(SentinelSuite):
    """The master falls silent and the replica takes its place."""

    def follow(self, silence: Any) -> None:
        """Hold a lock, and wait for it, over a failover."""
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=TTL))
        other = self.connect(connect_timeout=1)
        waiter = self.queue(other, other.lock("x", ttl=TTL), 20)
        harness = self.harness
        self.until_true(lambda: self.floor(harness.replica) == lease.token)
        silence()
        started = time.monotonic()
        self.until_true(lambda: harness.sentinel.master_port() == harness.replica.port)
        self.until_true(lambda: harness.replica.command("ROLE")[0] == "master")
        heard.events.clear()
        heard.until(holdfast.events.Renewed)
        assert lease.held
        assert lease.token == self.floor(harness.replica)
        assert lease.release() is True
        second = waiter.result()
        assert second.token > lease.token
        assert second.token == self.floor(harness.replica)
        assert second.release() is True
        third = self.take(self.client.lock("x", ttl=TTL))
        fourth = self.queue(other, other.lock("x", ttl=TTL))
        assert third.release() is True
        assert (fourth.result(3)).release() is True, "pushes come from there too"
        assert elapsed(started) < 20

    def until_true(self, condition: Any) -> None:
        """Return when the condition, which does not wait, is true."""

        def ask() -> bool:
            return bool(condition())

        self.until(ask)


class TestKilledMaster(Failover):
    """Its connections end."""

    harness = SentinelHarness()

    def test_followed(self) -> None:
        """The lease goes on under its token on the new master; whoever waits gets in there."""
        self.follow(self.harness.master.kill)


class TestSilentMaster(Failover):
    """Its connections stay open, and nothing comes on them."""

    harness = SentinelHarness()

    def test_followed(self) -> None:
        """Time-outs lead to the new master, also those who only listen: none stay behind."""
        self.follow(self.harness.master.pause)


@contextmanager
def silent_port() -> Iterator[int]:
    """Give a port where connections are made, and nobody answers."""
    with socket.create_server((HOST, 0)) as listener:
        yield listener.getsockname()[1]
