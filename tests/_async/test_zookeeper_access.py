"""Ways to get at ZooKeeper: logins, rights, TLS, roots, kazoo's own client, bounds of sessions."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.security import make_digest_acl  # type: ignore[import-untyped]

import holdfast.aio as holdfast
from holdfast.testing.harness import Harness
from holdfast.testing.servers import ZooKeeperServer, need, zookeeper_program
from holdfast.testing.zookeeper_harness import SharedZooKeeperHarness, ZooKeeperHarness
from tests._async.zookeeper_suite import AsyncZooKeeperSuite

USER, PASSWORD = "locks", "s3cret@/:"
WRITTEN = "locks:s3cret%40%2F%3A"  # as it stands in a URL


class TestRights(AsyncZooKeeperSuite):
    """Users, and what they may do to each other's nodes."""

    harness = SharedZooKeeperHarness()

    def there(self, login: str = "", rest: str = "") -> str:
        """Return a URL of the server itself."""
        return f"zookeeper://{login}127.0.0.1:{self.server.port}{rest}"

    async def rights(self, name: str = "x") -> set[tuple[str, str]]:
        """Return who has rights on a claim's node: scheme and id."""
        with self.kazoo() as kazoo:
            kazoo.add_auth("digest", f"{USER}:{PASSWORD}")
            node = kazoo.get_children(self.path(name))[0]
            acls, _ = kazoo.get_acls(f"{self.path(name)}/{node}")
        return {(acl.id.scheme, acl.id.id.partition(":")[0]) for acl in acls}

    async def test_without_a_user_all_is_open(self) -> None:
        """Everybody may see, and break, what a client without a login holds."""
        async with self.reach(self.there()).lock("x"):
            assert await self.rights() == {("world", "anyone")}

    async def test_with_a_user_only_that_user(self) -> None:
        """What a user holds only clients of that user can see; others are refused in a sentence
        that shows no password."""
        client = self.reach(self.there(f"{WRITTEN}@"))
        assert PASSWORD not in f"{client!r} {client.engine.location} {vars(client.engine)}"
        async with client.lock("x"):
            assert await self.rights() == {("digest", USER)}
            assert await self.reach(self.there(f"{WRITTEN}@")).lock("x").try_acquire() is None
            stranger = self.reach(self.there("other:one@"))
            error = await self.raises(holdfast.EngineUnavailable, stranger.lock("x").try_acquire)
            assert "right" in str(error)
            await self.raises(holdfast.EngineUnavailable, stranger.inspect, "x")

    @pytest.mark.parametrize("by", ["url", "argument", "list"])
    async def test_chosen_rights(self, by: str) -> None:
        """The ACL of what we make can be chosen: by a word, or by kazoo's own list."""
        options: dict[str, dict[str, Any]] = {
            "url": {},
            "argument": {"acl": "open"},
            "list": {"acl": [make_digest_acl(USER, PASSWORD, all=True)]},
        }
        url = self.there(f"{WRITTEN}@", "?acl=open" if by == "url" else "")
        async with self.reach(url, **options[by]).lock("x"):
            who = ("digest", USER) if by == "list" else ("world", "anyone")
            assert await self.rights() == {who}

    async def test_root(self) -> None:
        """Everything is made below the root of the URL, which is made if it is not there."""
        root = f"/root-{self.namespace}/below"
        client = self.reach(self.there(rest=root))
        assert client.engine.location.endswith(root)
        async with client.lock("x") as lease:
            with self.kazoo() as kazoo:
                assert kazoo.exists(f"{root}{self.path('x')}")
                assert not kazoo.exists(self.path("x"))
            assert [shot.name for shot in await client.locks()] == ["x"]
            assert await client.force_release("x", lease.token + 1) == 0
            assert list(await self.client.locks()) == []

    async def test_kazoo_s_own_client(self) -> None:
        """A KazooClient lends its servers, login and root; its session stays its own."""
        root = f"/lent-{self.namespace}"
        with self.kazoo() as own:
            own.ensure_path(root)
        kazoo = KazooClient(
            f"127.0.0.1:{self.server.port}{root}", auth_data=[("digest", f"{USER}:{PASSWORD}")]
        )
        kazoo.start()
        try:
            client = self.reach(kazoo)
            assert client.engine.location == self.there(rest=root)
            async with client.lock("x"):
                (node,) = kazoo.get_children(self.path("x"))
                stat = kazoo.exists(f"{self.path('x')}/{node}")
                assert stat.ephemeralOwner != kazoo.client_id[0]
                acls, _ = kazoo.get_acls(f"{self.path('x')}/{node}")
                assert [acl.id.scheme for acl in acls] == ["digest"]
            await client.close()
            assert kazoo.connected
        finally:
            kazoo.stop()
            kazoo.close()

    async def test_no_way_to_make_the_root(self) -> None:
        """A root that is not there and must not be made is said in one sentence."""
        with self.kazoo() as kazoo:
            closed = make_digest_acl("somebody", "else", all=True)
            kazoo.create(f"/closed-{self.namespace}", acl=[closed])
        client = self.reach(self.there(rest=f"/closed-{self.namespace}"))
        error = await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "right" in str(error) or "ACL" in str(error)

    @pytest.mark.parametrize("server", ["127.0.0.1:1", "no.such.host.invalid:2181"])
    async def test_nobody_there(self, server: str) -> None:
        """No server is EngineUnavailable, and says why."""
        client = self.reach(f"zookeeper://{server}", connect_timeout=0.5)
        error = await self.raises(holdfast.EngineUnavailable, client.ping)
        assert "refused" in str(error) or "resolve" in str(error) or "no connection" in str(error)


class TestBounds(AsyncZooKeeperSuite):
    """Servers that do not keep every TTL."""

    harness = ZooKeeperHarness(options={"minSessionTimeout": 3000, "maxSessionTimeout": 40000})

    @pytest.mark.parametrize(("ttl", "bound"), [(1.0, "ttl=3"), (2.9, "ttl=3"), (41, "ttl=40")])
    async def test_ttl_that_the_servers_do_not_keep(self, ttl: float, bound: str) -> None:
        """It is refused before anything is taken, in a sentence that names the bound and why."""
        error = await self.raises(holdfast.NotSupported, self.client.lock("x", ttl=ttl).acquire)
        assert bound in str(error)
        assert "SessionTimeout" in str(error)
        assert error.name == "x"
        assert self.nodes() == []

    @pytest.mark.parametrize("ttl", [3, 2.9996, 3.0004, 40])
    async def test_ttl_that_they_keep(self, ttl: float) -> None:
        """At the bounds it is granted; fractions of a millisecond are kept longer, not shorter."""
        async with self.client.lock("x", ttl=ttl) as lease:
            assert lease.remaining() < ttl
            assert self.session(self.client, ttl).negotiated >= ttl

    async def test_many_ttls(self) -> None:
        """Sessions that nobody uses any more are ended once there are too many."""
        for number in range(12):
            await self.cycle(self.client, ttl=10 + number / 10)
        sessions = vars(vars(self.client.engine)["sessions"])["_by_ttl"]
        assert len(sessions) <= 10
        async with self.client.lock("x", ttl=10) as lease:
            assert lease.held


class _Secured(Harness):
    """One server with a login or a certificate, without a proxy in between."""

    def __init__(self, **options: Any) -> None:
        self.server = ZooKeeperServer(**options)

    def start(self) -> None:
        """Start it."""
        need(zookeeper_program)
        self.server.start()
        self.url = self.server.url

    def stop(self) -> None:
        """Stop it."""
        self.server.stop()


class TestTLS(AsyncZooKeeperSuite):
    """A server that speaks TLS."""

    harness: ClassVar[Any] = _Secured(tls=True)

    async def conduct(self, test: Any, **arguments: Any) -> None:
        """Run one test, without a proxy."""
        await super(AsyncZooKeeperSuite, self).conduct(test, **arguments)

    async def test_certificate_is_checked(self) -> None:
        """With the right authority it works, hand-overs included; without it is refused."""
        other = self.connect()
        lease = await self.take(self.client.lock("x"))
        waiter = await self.queue(other, other.lock("x"))
        assert await lease.release() is True
        assert await (await waiter.result()).release() is True
        stranger = self.reach(
            f"zookeeper://127.0.0.1:{self.server.port}?tls=yes", connect_timeout=1
        )
        error = await self.raises(holdfast.EngineUnavailable, stranger.ping)
        assert "certificate" in str(error)


class TestSASL(AsyncZooKeeperSuite):
    """A server that knows users by SASL."""

    harness: ClassVar[Any] = _Secured(login=("holdfast", "pass-word"))

    async def conduct(self, test: Any, **arguments: Any) -> None:
        """Run one test, without a proxy."""
        await super(AsyncZooKeeperSuite, self).conduct(test, **arguments)

    @pytest.mark.parametrize("by", ["url", "argument"])
    async def test_login(self, by: str) -> None:
        """User and password in the URL with `sasl=`, or kazoo's options: nodes are the user's."""
        port = self.server.port
        if by == "url":
            where = f"zookeeper://holdfast:pass-word@127.0.0.1:{port}?sasl=DIGEST-MD5"
            client = self.reach(where)
        else:
            login = {"mechanism": "DIGEST-MD5", "username": "holdfast", "password": "pass-word"}
            client = self.reach(f"zookeeper://127.0.0.1:{port}", sasl_options=login)
        async with client.lock("x"):
            await self.raises(holdfast.EngineUnavailable, self.client.lock("x").try_acquire)

    async def test_wrong_password(self) -> None:
        """It is refused in a sentence, which does not show it; nothing hangs."""
        where = f"zookeeper://holdfast:wrong-one@127.0.0.1:{self.server.port}?sasl=DIGEST-MD5"
        client = self.reach(where, connect_timeout=2)
        error = await self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "wrong-one" not in str(error)
