"""What tests of the etcd engine on real servers stand on: ways to look at the servers."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.names import encode, record_key
from holdfast.testing._async.conformance.base import AsyncBase
from holdfast.testing.etcd_harness import EtcdClusterHarness, EtcdHarness
from holdfast.testing.servers import EtcdCluster, EtcdServer, Proxy
from holdfast.testing.servers.etcd import key


class AsyncEtcdSuite(AsyncBase):
    """A test, its clients, and the one server behind its proxy."""

    harness: ClassVar[EtcdHarness | EtcdClusterHarness]

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test, and heal whatever it did to the network."""
        try:
            await super().conduct(test, **arguments)
        finally:
            self.harness.heal()

    @property
    def server(self) -> EtcdServer:
        """The server itself, or the first of them."""
        return self.harness.servers[0]

    @property
    def proxy(self) -> Proxy:
        """What stands between it and the clients."""
        return self.harness.proxies[0]

    def reach(self, where: object, **options: Any) -> holdfast.Client:
        """Return one more client, of whatever `where` names, closed at the end of the test."""
        client = holdfast.connect(where, **{"namespace": self.namespace, **options})
        self._clients.append(client)
        return client

    async def cycle(self, client: holdfast.Client, name: str = "x") -> int:
        """Acquire and release once; return the token."""
        lease = await self.take(client.lock(name))
        assert lease.held
        assert await lease.release() is True
        return lease.token

    async def hand_over(self, client: holdfast.Client, name: str = "x") -> None:
        """Let one task or thread wait for another: the next one is told by its watch."""
        first = await self.take(client.lock(name))
        waiter = await self.queue(client, client.lock(name))
        assert await first.release() is True
        second = await waiter.result()
        assert second.token > first.token
        assert await second.release() is True

    # --- Looking at the server. ---

    def key(self, name: str) -> str:
        """Return the key of a record."""
        return record_key(self.namespace, encode(name))

    def keys(self, name: str = "", server: EtcdServer | None = None) -> list[str]:
        """Return the keys of a record in the order of the queue; of all records without a name."""
        prefix = f"{self.key(name)}/" if name else f"{self.namespace}/1/"
        return (server or self.server).keys(prefix)

    def sessions(self) -> list[str]:
        """Return the keys of all sessions of this test."""
        return self.server.keys(f"{self.namespace}/1:sessions/")

    def tombstones(self) -> list[str]:
        """Return the keys of all tombstones of this test."""
        return self.server.keys(f"{self.namespace}/1:gone/")

    def owners(self, name: str) -> list[str]:
        """Return who holds and who waits, in the order of the queue."""
        return [json.loads(value)["owner"] for value in self.server.values(f"{self.key(name)}/")]

    def lease_of(self, name: str) -> int:
        """Return the lease that a key hangs on."""
        (found,) = self.server.ask("kv/range", {"key": key(name)})["kvs"]
        return int(found["lease"])

    def metric(self, name: str, *words: str) -> float:
        """Return the sum of a metric of the server over all lines with these words."""
        return self.server.metric(name, *words)

    def calls(self, *methods: str) -> int:
        """Return how often these calls have come to an end; any that an engine makes, if none."""
        name = "grpc_server_handled_total"
        if not methods:
            methods = ("Txn", "LeaseGrant", "LeaseRevoke", "LeaseKeepAlive", "LeaseTimeToLive")
        return int(sum(self.metric(name, method) for method in methods))

    async def until_so(self, condition: Callable[[], object]) -> None:
        """Return when the condition, which does not wait, is true; it must become so."""
        end = time.monotonic() + self.harness.patience
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            await asleep(0.005)

    async def until_free(self, name: str = "") -> None:
        """Return when the server says that nobody holds or waits, asked without our link."""
        await self.until_so(lambda: not self.keys(name))


class AsyncEtcdClusterSuite(AsyncEtcdSuite):
    """A test, its clients, and three servers, each behind a proxy."""

    harness: ClassVar[EtcdClusterHarness]

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test, and bring back whatever it did to the servers."""
        try:
            await super().conduct(test, **arguments)
        finally:
            for server in self.cluster.servers:
                if not server.running:
                    server.start()
                elif server.paused:
                    server.resume()
            self.cluster.until_healthy()

    @property
    def cluster(self) -> EtcdCluster:
        """The servers."""
        return self.harness.cluster

    def url_of(self, *numbers: int) -> str:
        """Return the URL of some of the servers, through their proxies, in this order."""
        ports = [self.harness.proxies[number].port for number in numbers]
        return "etcd://" + ",".join(f"127.0.0.1:{port}" for port in ports)

    def others(self, number: int) -> tuple[int, ...]:
        """Return the numbers of all other servers."""
        return tuple(one for one in range(len(self.cluster.servers)) if one != number)
