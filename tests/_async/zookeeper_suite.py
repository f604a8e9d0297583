"""What tests of the ZooKeeper engine on real servers stand on: ways to look at wire and server."""

from __future__ import annotations

import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from kazoo.client import KazooClient  # type: ignore[import-untyped]

import holdfast.aio as holdfast
from holdfast._async.zookeeper_session import AsyncSession
from holdfast._concurrency import asleep
from holdfast.names import encode, record_key
from holdfast.testing._async.conformance.base import AsyncBase
from holdfast.testing.servers import Proxy, ZooKeeperServer
from holdfast.testing.zookeeper_harness import ZooKeeperHarness

CREATE, DELETE, EXISTS, READ, LIST, SYNC = 15, 2, 3, 4, 8, 9
CHECK = bytes((0, 0, 0, 14, 0, 0, 0, 13, 0, 255, 255, 255, 255))  # a transaction that begins so
GREETING = bytes(16)  # the password of a session that does not exist yet


class AsyncZooKeeperSuite(AsyncBase):
    """A test, its clients, and the one server behind its proxy."""

    harness: ClassVar[ZooKeeperHarness]

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test, and heal whatever it did to the network."""
        try:
            await super().conduct(test, **arguments)
        finally:
            self.proxy.heal()

    @property
    def server(self) -> ZooKeeperServer:
        """The server itself."""
        return self.harness.server

    @property
    def proxy(self) -> Proxy:
        """What stands between it and the clients."""
        return self.harness.proxy

    def reach(self, where: object, **options: Any) -> holdfast.Client:
        """Return one more client, of whatever `where` names, closed at the end of the test."""
        client = holdfast.connect(where, **{"namespace": self.namespace, **options})
        self._clients.append(client)
        return client

    async def cycle(self, client: holdfast.Client, name: str = "x", **options: Any) -> int:
        """Acquire and release once; return the token."""
        lease = await self.take(client.lock(name, **options))
        assert lease.held
        assert await lease.release() is True
        return lease.token

    def session(self, client: holdfast.Client, ttl: float) -> AsyncSession:
        """Return a client's session for a TTL."""
        found: AsyncSession | None = vars(client.engine)["sessions"].find(ttl)
        assert found is not None
        return found

    def expire(self, client: holdfast.Client, ttl: float) -> None:
        """End a client's session on the server, behind its back."""
        number = vars(self.session(client, ttl))["_kazoo"].client_id
        other = KazooClient(f"127.0.0.1:{self.server.port}", client_id=number, timeout=ttl)
        other.start()
        other.stop()
        other.close()

    # --- Looking at the wire. ---

    def request(self, kind: int, name: str = "x") -> bytes:
        """Return how a request about a record, or about a node below it, looks on the wire."""
        path = self.path(name).encode()
        if kind in (LIST, SYNC):
            return struct.pack("!ii", kind, len(path)) + path
        return struct.pack("!i", kind) + b"\x00\x00\x00"  # the length of a path is one byte

    # --- Looking at the server. ---

    def path(self, name: str) -> str:
        """Return the node of a record."""
        return f"/{record_key(self.namespace, encode(name))}"

    def kazoo(self) -> Kazoo:
        """Return a client of kazoo as it comes, for a while."""
        return Kazoo(self.server.port)

    def nodes(self, name: str = "x") -> list[str]:
        """Return the nodes below a record, asked without our link."""
        with self.kazoo() as kazoo:
            path = self.path(name)
            found: list[str] = kazoo.get_children(path) if kazoo.exists(path) else []
        return sorted(found, key=lambda node: node[-10:])

    def received(self) -> int:
        """Return how many requests the server has received, this question not counted."""
        return self.server.figure("zk_packets_received")

    async def until_so(self, condition: Callable[[], object]) -> None:
        """Return when the condition, which does not wait, is true; it must become so."""
        end = time.monotonic() + self.harness.patience
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            await asleep(0.01)

    async def until_confirmed(self, lease: holdfast.Lease) -> None:
        """Return when the servers have confirmed a lease once more."""

        async def confirmed() -> bool:
            try:
                await lease.extend()
            except holdfast.OutcomeUnknown:
                return False
            return True

        end = time.monotonic() + 6 * self.harness.patience
        while not await confirmed():
            assert time.monotonic() < end, "waited in vain"
            await asleep(0.05)

    async def until_free(self, name: str = "x") -> None:
        """Return when the server has no node of a record, asked without our link."""
        await self.until_so(lambda: not self.nodes(name))


class Kazoo:
    """A client of kazoo as it comes, stopped at the end."""

    def __init__(self, port: int) -> None:
        self._kazoo = KazooClient(f"127.0.0.1:{port}", timeout=10)

    def __enter__(self) -> Any:
        self._kazoo.start()
        return self._kazoo

    def __exit__(self, *_: object) -> None:
        self._kazoo.stop()
        self._kazoo.close()
