"""What tests of Redlock on real servers stand on: faults of single nodes, and looks behind them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar

import holdfast.aio as holdfast
from holdfast._concurrency import asleep
from holdfast.names import encode, record_key
from holdfast.testing._async.conformance.base import AsyncBase
from holdfast.testing.redis_harness import RedlockHarness
from holdfast.testing.running import AsyncSpawned
from holdfast.testing.servers import Proxy, RedisServer
from holdfast.testing.servers.ports import LOOPBACK

ALL = range(5)
LONG = 30.0  # a TTL that nobody waits for
PATIENT = 0.5  # a node time-out that a busy machine does not reach


class AsyncRedlockSuite(AsyncBase):
    """A test, its clients, and five servers, each behind its proxy."""

    harness: ClassVar[RedlockHarness]

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test, and repair whatever it did to the servers and the network."""
        try:
            await super().conduct(test, **arguments)
        finally:
            for server, proxy in zip(self.servers, self.proxies, strict=True):
                proxy.heal()
                proxy.lead_to(server.port)
                if server.paused:
                    server.resume()
                if not server.running:
                    server.start()

    @property
    def servers(self) -> list[RedisServer]:
        """The nodes themselves."""
        return self.harness.servers

    @property
    def proxies(self) -> list[Proxy]:
        """What stands before each."""
        return self.harness.proxies

    def patient(self, **options: Any) -> holdfast.Client:
        """Return a client that does not take a busy machine for a silent node."""
        return self.connect(**{"node_timeout": PATIENT, "ttl": LONG, **options})

    def reach(self, where: object, **options: Any) -> holdfast.Client:
        """Return a client of whatever `where` names, closed at the end of the test."""
        client = holdfast.connect(where, **{"namespace": self.namespace, **options})
        self._clients.append(client)
        return client

    def direct(self, **options: Any) -> holdfast.Client:
        """Return a patient client that is not affected by the proxies."""
        urls = [server.url for server in self.servers]
        return self.reach(urls, **{"node_timeout": PATIENT, "ttl": LONG, **options})

    async def cycle(self, client: holdfast.Client, name: str = "x") -> int:
        """Acquire and release once; return the token."""
        lease = await self.take(client.lock(name))
        assert lease.held
        assert await lease.release() is True
        return lease.token

    async def cycle_with_all(self, client: holdfast.Client) -> None:
        """Acquire and release once; hear what each node says to it."""
        client.engine._nodes.hear_all()  # type: ignore[attr-defined]
        await self.cycle(client)
        await self.settle(client)

    async def settle(self, client: holdfast.Client) -> None:
        """Wait for the nodes without which a majority has decided: until they have answered, or had
        their time."""
        for node in client.engine.nodes:  # type: ignore[attr-defined]
            await node.link.hear_out()

    async def warm_up(self, client: holdfast.Client) -> None:
        """Use every verb once: connections are made, and all nodes know all scripts."""
        lease = await self.take(client.lock("warm"))
        await lease.extend()
        await client.inspect("warm")
        assert await client.force_release("warm", token=1) == 0
        assert await lease.release() is True
        await self.settle(client)

    def beside(self, call: Callable[..., Awaitable[Any]], *args: Any) -> AsyncSpawned[Any]:
        """Run a call beside the test."""
        return AsyncSpawned(call, *args)

    # --- Faults. ---

    def cut(self, *numbers: int) -> None:
        """Cut these nodes off."""
        for number in numbers:
            self.proxies[number].cut()

    def heal(self, *numbers: int) -> None:
        """Let these nodes be reached again, all without any."""
        for number in numbers or ALL:
            self.proxies[number].heal()

    def unseat(self, name: str, *numbers: int) -> None:
        """Let these nodes forget one record, as eviction would."""
        for number in numbers:
            self.servers[number].command("DEL", self.key(name))

    # --- Looking at the servers. ---

    def key(self, name: str) -> str:
        """Return the key of a record on the servers."""
        return "{" + record_key(self.namespace, encode(name)) + "}"

    @property
    def roster_key(self) -> str:
        """The key of the rosters."""
        return "{" + record_key(self.namespace, "").rstrip("/") + "}:roster"

    def roster(self, number: int) -> dict[str, str]:
        """Return the roster of a node."""
        found: list[str] = self.servers[number].command("HGETALL", self.roster_key)
        return dict(zip(found[::2], found[1::2], strict=True))

    def tokens_at(self, number: int, name: str) -> dict[str, int]:
        """Return who holds according to one node, asked without our link: tokens by owner."""
        found: list[str] = self.servers[number].command("HGETALL", self.key(name))
        pairs = zip(found[::2], found[1::2], strict=True)
        return {owner: int(text.split(" ")[0]) for owner, text in pairs if len(owner) > 1}

    def seats(self, name: str, owner: str | None = None) -> list[int]:
        """Return the nodes on which somebody, or this owner, holds."""
        found = {number: self.tokens_at(number, name) for number in ALL}
        return [number for number, by in found.items() if (by if owner is None else owner in by)]

    def now(self, number: int) -> int:
        """Return what a node's clock says, in microseconds."""
        whole, millionths = self.servers[number].command("TIME")
        return int(whole) * 1_000_000 + int(millionths)

    def waiting(self, number: int, name: str) -> int:
        """Return how many wait on one node."""
        return int(self.servers[number].command("ZCARD", f"{self.key(name)}:q"))

    def floor(self, number: int, name: str) -> int:
        """Return the highest token that one node remembers."""
        return int(self.servers[number].command("HGET", self.key(name), "f") or 0)

    def calls(self, number: int, command: str = "evalsha") -> int:
        """Return how often a command was called on a node since the last CONFIG RESETSTAT."""
        for line in self.servers[number].command("INFO", "commandstats").splitlines():
            if line.startswith(f"cmdstat_{command}:"):
                return int(line.partition("calls=")[2].partition(",")[0])
        return 0

    def forget_calls(self, numbers: Iterable[int] = ALL) -> None:
        """Let `calls` begin at 0."""
        for number in numbers:
            self.servers[number].command("CONFIG", "RESETSTAT")

    async def until_so(self, condition: Callable[[], object], patience: float = 0.0) -> None:
        """Return when the condition, which does not wait, is true; it must become so."""
        end = time.monotonic() + (patience or self.harness.patience)
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            await asleep(0.005)

    async def until_free(self, name: str, *numbers: int, patience: float = 0.0) -> None:
        """Return when these nodes, or all, say that nobody holds or waits."""
        wanted = set(numbers or ALL)
        await self.until_so(lambda: not wanted & set(self.seats(name)), patience)
        await self.until_so(lambda: not any(self.waiting(one, name) for one in wanted), patience)


class AsyncClockedRedlockSuite(AsyncRedlockSuite):
    """The same with nodes whose clocks can be set."""

    harness = RedlockHarness(fake_clock=True)

    async def conduct(self, test: Callable[..., Awaitable[None]], **arguments: Any) -> None:
        """Run one test, and set all clocks right again."""
        try:
            await super().conduct(test, **arguments)
        finally:
            for server in self.servers:
                server.step_clock(0)


def urls_of(ports: Iterable[int]) -> list[str]:
    """Return URLs of servers on this machine."""
    return [f"redis://{LOOPBACK}:{port}" for port in ports]
