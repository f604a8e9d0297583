"""Which servers make a Redlock: what only looks like independent ones is refused, at any time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import redis

import holdfast.aio as holdfast
from holdfast.testing.redis_harness import RedlockHarness
from holdfast.testing.servers import RedisServer, need, redis_program
from tests._async.redlock_suite import AsyncRedlockSuite, urls_of


@contextmanager
def running(**options: Any) -> Iterator[RedisServer]:
    """Start one more server."""
    with RedisServer(need(redis_program), **options) as server:
        yield server


class TestSetUps(AsyncRedlockSuite):
    """Five servers, named in wrong and right ways."""

    harness = RedlockHarness()

    async def refused(self, where: object, words: str, **options: Any) -> None:
        """Use a client that must be refused, whatever it is used for first."""
        client = self.reach(where, **options)
        for call in (client.ping, client.lock("x").try_acquire, client.lock("x").acquire):
            error = await self.raises(holdfast.NotSupported, call)
            assert words in str(error)
        assert self.seats("x") == []

    async def until_refused(self, client: holdfast.Client) -> None:
        """Return when the client has noticed; until then that node is only silent."""

        async def noticed() -> bool:
            try:
                lease = await client.lock("x").try_acquire()
            except holdfast.NotSupported as error:
                return "is the same server as" in str(error)
            assert lease is not None
            assert len(self.seats("x", lease.owner)) >= 3
            await lease.release()
            return False

        await self.until(noticed)

    async def until_works(self, client: holdfast.Client) -> None:
        """Return when the client has noticed that all is well again."""

        async def works() -> bool:
            try:
                await self.cycle(client)
            except holdfast.NotSupported:
                return False
            return True

        await self.until(works)

    # --- The same server twice. ---

    async def test_two_names_of_one_server(self) -> None:
        """127.0.0.1 and localhost are one server, which would vote twice."""
        ports = [server.port for server in self.servers]
        alias = f"redis://localhost:{ports[0]}"
        await self.refused([*urls_of(ports[:2]), alias], "is the same server as")

    async def test_two_databases_of_one_server(self) -> None:
        """Two databases share one memory, one clock and one end."""
        ports = [server.port for server in self.servers]
        await self.refused(
            [*urls_of(ports[:2]), f"redis://127.0.0.1:{ports[1]}/1"], "is the same server as"
        )

    async def test_two_ways_to_one_server(self) -> None:
        """The proxy of a server and the server itself are told by what they say, not by port."""
        ports = [self.servers[0].port, self.servers[1].port, self.proxies[0].port]
        await self.refused(urls_of(ports), "is the same server as")

    async def test_a_way_that_leads_elsewhere_later(self) -> None:
        """A name that moves to another node's server grants nothing while it does; what is held is
        kept by the others, and all is well when it leads home again."""
        client, other = self.patient(), self.patient()
        lease = await self.take(client.lock("held", ttl=10))
        await self.cycle(other)
        self.cut(2, 3)
        self.proxies[4].lead_to(self.servers[0].port)
        self.proxies[4].close_all()
        for _ in range(3):  # two servers that seem to be three are no majority
            error = await self.raises(holdfast.LockError, other.lock("x").try_acquire)
            assert isinstance(error, holdfast.NotSupported | holdfast.EngineUnavailable)
        self.heal(2, 3)
        for one in (client, other):
            await self.until_refused(one)
        await lease.extend()
        assert lease.held
        assert await lease.release() is True
        assert client.engine.nodes[4].errors >= 1  # type: ignore[attr-defined]
        self.proxies[4].lead_to(self.servers[4].port)
        self.proxies[4].close_all()
        await self.until_works(client)
        await self.until_free("x")

    # --- No masters of their own. ---

    async def test_a_replica(self) -> None:
        """A replica has no will of its own."""
        with running(replica_of=self.servers[0]) as replica:
            ports = [self.servers[0].port, self.servers[1].port, replica.port]
            await self.refused(urls_of(ports), "is a replica")

    async def test_a_node_that_becomes_a_replica(self) -> None:
        """A node that is made a replica while it is used is one no more, until it is a master."""
        client = self.patient()
        lease = await self.take(client.lock("held", ttl=10))
        server = self.servers[3]
        server.command("REPLICAOF", "127.0.0.1", self.servers[0].port)
        try:
            for _ in range(2):  # the others have a majority: that one is only silent
                await self.cycle_with_all(client)
            assert client.engine.nodes[3].error is not None  # type: ignore[attr-defined]
            self.proxies[3].close_all()
            fresh = self.patient()
            await self.raises(holdfast.NotSupported, fresh.ping)
            await lease.extend()
        finally:
            server.command("REPLICAOF", "NO", "ONE")
        assert await lease.release() is True
        await self.until_works(fresh)

    async def test_a_member_of_a_cluster(self) -> None:
        """What a Cluster fails over to forgets what was granted."""
        with running(options={"cluster-enabled": "yes"}) as member:
            ports = [self.servers[0].port, self.servers[1].port, member.port]
            await self.refused(urls_of(ports), "member of a Redis Cluster")

    # --- Clients that disagree. ---

    async def test_max_ttl_that_differs(self) -> None:
        """How long a forgetful node must stay out is the same for all; both numbers are named."""
        await self.cycle(self.patient(max_ttl=300))
        other = self.patient(max_ttl=60)
        error = await self.raises(holdfast.NotSupported, other.lock("y").try_acquire)
        assert "max_ttl=300" in str(error)
        assert "max_ttl=60" in str(error)
        assert self.seats("y") == []

    async def test_number_of_nodes_that_differs(self) -> None:
        """Majorities of three and of five need not share a node; both numbers are named."""
        await self.cycle(self.patient())
        ports = [proxy.port for proxy in self.proxies]
        other = self.reach(urls_of(ports[:3]))
        error = await self.raises(holdfast.NotSupported, other.lock("y").try_acquire)
        assert "5 nodes by others" in str(error)
        assert "3 nodes here" in str(error)
        assert self.seats("y") == []

    async def test_another_namespace_may_differ(self) -> None:
        """max_ttl is agreed on by namespace."""
        await self.cycle(self.patient(max_ttl=300))
        await self.cycle(self.patient(max_ttl=60, namespace=f"{self.namespace}-other"))

    # --- Quorum. ---

    @pytest.mark.parametrize("quorum", [1, 2, 6])
    async def test_quorum_that_is_none(self, quorum: int) -> None:
        """Fewer than a majority is refused before anything is asked."""
        with pytest.raises(ValueError, match="quorum must be 3 to 5"):
            self.connect(quorum=quorum)

    async def test_quorum_of_all(self) -> None:
        """With quorum=5 one node that is down is one too many, also for those who look."""
        client = self.patient(quorum=5, connect_timeout=0.5)
        await self.cycle(client)
        self.cut(1)
        await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        await self.raises(holdfast.EngineUnavailable, client.inspect, "x")
        self.heal(1)
        await self.until_free("x")
        lease = await self.take(client.lock("x"))
        assert self.seats("x") == [0, 1, 2, 3, 4]
        assert await lease.release() is True


class TestLogins(AsyncRedlockSuite):
    """Each node has its own user, password and database."""

    harness = RedlockHarness(3)

    async def test_each_node_has_its_own(self) -> None:
        """A list mixes URLs and clients, with a login each; no password is shown anywhere."""
        secrets = ["secret-one", "secret-two", "secret-three"]
        with ExitStack() as stack:
            servers = [
                stack.enter_context(running(options={"requirepass": secret})) for secret in secrets
            ]
            servers[1].command("ACL", "SETUSER", "me", "on", ">secret-me", "~*", "&*", "+@all")
            nodes: list[object] = [
                f"redis://:{secrets[0]}@127.0.0.1:{servers[0].port}",
                redis.Redis(port=servers[1].port, username="me", password="secret-me", db=2),
                f"redis://default:{secrets[2]}@127.0.0.1:{servers[2].port}/1",
            ]
            client = self.reach(nodes, ttl=30, node_timeout=0.5)
            await self.cycle(client)
            shown = [repr(client), client.engine.location]

            wrong = [*nodes[:2], f"redis://default:secret-bad@127.0.0.1:{servers[2].port}/1"]
            other = self.reach(wrong, ttl=30, node_timeout=0.5)
            heard = self.listen(other)
            await self.cycle(other, "y")  # two of three are a majority
            (failed,) = await heard.until(holdfast.events.NodeFailed)
            assert failed.node == f"redis://127.0.0.1:{servers[2].port}/1"
            assert "password" in failed.error
            shown += [repr(failed), str(other.engine.nodes[2].error)]  # type: ignore[attr-defined]

            none = self.reach(
                [f"redis://:secret-bad@127.0.0.1:{server.port}" for server in servers],
                connect_timeout=0.3,
            )
            error = await self.raises(holdfast.EngineUnavailable, none.ping)
            assert "does not accept the user or password" in str(error)
            assert not [text for text in (*shown, str(error)) if "secret" in text]
            await client.close()
            await other.close()
