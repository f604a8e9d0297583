"""What tests of the Redis engine on a real server stand on: ways to look at the server itself."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.names import encode, record_key
from holdfast.testing._async.conformance.base import AsyncBase
from holdfast.testing.redis_harness import RedisHarness
from holdfast.testing.servers import Proxy, RedisServer


class AsyncRedisSuite(AsyncBase):
    """A test, its clients, and the one server behind its proxy."""

    harness: ClassVar[RedisHarness]

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test, and heal whatever it did to the network."""
        try:
            await super().conduct(test, **arguments)
        finally:
            self.proxy.heal()

    @property
    def server(self) -> RedisServer:
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

    async def cycle(self, client: holdfast.Client, name: str = "x") -> int:
        """Acquire and release once; return the token."""
        lease = await self.take(client.lock(name))
        assert lease.held
        assert await lease.release() is True
        return lease.token

    async def warm_up(self, client: holdfast.Client) -> None:
        """Use every verb once: connections are made, and the server knows all scripts."""
        lease = await self.take(client.lock("warm"))
        await lease.extend()
        await client.inspect("warm")
        assert await client.force_release("warm", token=1) == 0
        assert await lease.release() is True

    async def hand_over(self, client: holdfast.Client, name: str = "x") -> None:
        """Let one task or thread wait for another: the lock is handed over by push."""
        first = await self.take(client.lock(name))
        waiter = await self.queue(client, client.lock(name))
        assert await first.release() is True
        second = await waiter.result()
        assert second.token > first.token
        assert await second.release() is True

    async def until_granted(self, client: holdfast.Client, name: str = "x") -> None:
        """Return when the client has been granted a lock, and has given it back."""

        async def granted() -> bool:
            try:
                lease = await client.lock(name).try_acquire()
            except holdfast.EngineUnavailable:
                return False
            assert lease is not None
            await lease.release()
            return True

        await self.until(granted)

    # --- Looking at the server. ---

    def requests(self) -> int:
        """Return how many requests have gone through the proxy."""
        self.proxy.delay(0)  # it obeys when it has counted what it has forwarded
        return self.proxy.requests

    def key(self, name: str) -> str:
        """Return the key of a record on the server."""
        return "{" + record_key(self.namespace, encode(name)) + "}"

    def keys(self) -> list[str]:
        """Return all keys of this test on the server."""
        found: list[str] = self.server.command("KEYS", f"*{self.namespace}*")
        return sorted(found)

    def floor(self, name: str) -> int:
        """Return the highest token that the server remembers of a name."""
        return int(self.server.command("HGET", self.key(name), "f"))

    def holders(self, name: str) -> list[str]:
        """Return who holds, asked without our link: all fields but those of one letter."""
        fields: list[str] = self.server.command("HKEYS", self.key(name))
        return [field for field in fields if len(field) > 1]

    def waiting(self, name: str) -> int:
        """Return how many wait, asked without our link."""
        return int(self.server.command("ZCARD", f"{self.key(name)}:q"))

    def links(self, kind: str = "normal") -> set[int]:
        """Return the ids of our connections that the server knows, of one kind."""
        lines = self.server.command("CLIENT", "LIST", "TYPE", kind).splitlines()
        found = [dict(word.partition("=")[::2] for word in line.split()) for line in lines]
        return {int(one["id"]) for one in found if one["name"] == "holdfast"}

    def calls(self, command: str = "evalsha") -> int:
        """Return how often a command was called since the last CONFIG RESETSTAT."""
        for line in self.server.command("INFO", "commandstats").splitlines():
            if line.startswith(f"cmdstat_{command}:"):
                return int(line.partition("calls=")[2].partition(",")[0])
        return 0

    async def until_so(self, condition: Callable[[], object]) -> None:
        """Return when the condition, which does not wait, is true; it must become so."""
        end = time.monotonic() + self.harness.patience
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            await asleep(0.005)

    async def until_free(self, name: str) -> None:
        """Return when the server says that nobody holds or waits, asked without our link."""
        await self.until_so(lambda: not self.holders(name))
        assert self.waiting(name) == 0
