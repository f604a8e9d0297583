"""(Generated from _async/test_etcd_server.py by tools/unasync.py: do not edit.) Setups of etcd: TLS, users and rights, logins that end, channels of one's own, short leases."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest

import holdfast
from holdfast.model import Reason
from holdfast.testing.etcd_harness import EtcdHarness
from holdfast.testing.servers import EtcdServer
from holdfast.testing.servers.etcd import key
from tests._sync.etcd_suite import EtcdSuite

SECRET = "s3cr3t-word"


class TestTls(EtcdSuite):
    """A server that speaks TLS."""

    harness = EtcdHarness(tls=True)

    def test_trusted(self) -> None:
        """With its authority named, everything works as without TLS."""
        client = self.reach(f"{self.server.url}?ssl_ca_certs={self.server.directory}/ca.crt")
        self.hand_over(client)
        assert client.engine.location == self.server.url

    def test_not_trusted(self) -> None:
        """A certificate that nobody vouches for is refused, and the sentence says what to do."""
        client = self.reach(self.server.url, connect_timeout=2)
        error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "ssl_ca_certs" in str(error)

    def test_another_name(self) -> None:
        """The name in the certificate may be given, where it is not the host's."""
        trust = f"ssl_ca_certs={self.server.directory}/ca.crt"
        where = f"{self.server.url.replace('127.0.0.1', 'localhost')}?{trust}"
        self.cycle(self.reach(f"{where}&ssl_server_name=localhost"))
        wrong = self.reach(f"{where}&ssl_server_name=elsewhere.example", connect_timeout=2)
        self.raises(holdfast.EngineUnavailable, wrong.lock("x").try_acquire)


class TestUsers(EtcdSuite):
    """A cluster that wants a user and a password."""

    harness = EtcdHarness(options={"auth-token-ttl": "300"})

    def conduct(self, test: Callable[..., None], **arguments: Any) -> None:
        """Run one test with a user that may do what locks need, in this test's namespace."""
        self.server.ask("auth/role/add", {"name": "root"})
        self.server.ask("auth/user/add", {"name": "root", "password": SECRET})
        self.server.ask("auth/user/grant", {"user": "root", "role": "root"})
        self.server.ask("auth/role/add", {"name": "locks"})
        for first in ("test-", "holdfast"):
            span = {"key": key(first), "range_end": key(first[:-1] + chr(ord(first[-1]) + 1))}
            grant = {"name": "locks", "perm": {"permType": "READWRITE", **span}}
            self.server.ask("auth/role/grant", grant)
        self.server.ask("auth/user/add", {"name": "app", "password": SECRET})
        self.server.ask("auth/user/grant", {"user": "app", "role": "locks"})
        self.server.ask("auth/enable")
        try:
            super().conduct(test, **arguments)
        finally:
            login = self.server.ask("auth/authenticate", {"name": "root", "password": SECRET})
            self.server.ask("auth/disable", login=login["token"])
            for path, name in (("user", "root"), ("user", "app"), ("role", "root")):
                self.server.ask(f"auth/{path}/delete", {"name": name, "role": name})
            self.server.ask("auth/role/delete", {"role": "locks"})

    def url(self, user: str = "app", password: str = SECRET) -> str:
        """Return the URL with a login."""
        return self.harness.url.replace("//", f"//{user}:{password}@")

    def test_login(self) -> None:
        """With a login everything works, waiting included; it is shown nowhere."""
        client = self.reach(self.url())
        self.hand_over(client)
        assert SECRET not in repr(client)
        assert SECRET not in repr(client.engine.settings)  # type: ignore[attr-defined]
        client.ping()

    def test_no_login(self) -> None:
        """Without one the sentence says what is missing."""
        error = self.raises(holdfast.EngineUnavailable, self.client.lock("x").try_acquire)
        assert "user" in str(error)

    def test_wrong_password(self) -> None:
        """A wrong password is refused in a sentence that does not repeat it."""
        client = self.reach(self.url(password="wr0ng-word"))
        error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "does not accept the user or password" in str(error)
        assert "wr0ng-word" not in str(error)

    def test_no_rights(self) -> None:
        """Names that the user may not write are refused, and the sentence says why."""
        client = self.reach(self.url(), namespace="forbidden")
        error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "lacks rights" in str(error)

    def test_login_that_ended(self) -> None:
        """A login that is over is made again, by the request that finds out: leases go on."""
        client = self.reach(self.url(), ttl=3)
        lease = self.take(client.lock("x"))
        other = self.reach(self.url(), ttl=3)
        waiter = self.queue(other, other.lock("x"))
        # Servers keep simple tokens in memory: a restart forgets them all.
        self.server.restart(keep_data=True)
        heard = self.listen(client)
        heard.until(holdfast.events.Renewed, 2)
        assert lease.held
        assert lease.release() is True
        second = waiter.result()
        assert second.token > lease.token
        assert second.release() is True

    def test_users_that_changed(self) -> None:
        """When rights have changed meanwhile, a login is made again too."""
        client = self.reach(self.url())
        self.cycle(client)
        login = self.server.ask("auth/authenticate", {"name": "root", "password": SECRET})
        self.server.ask("auth/user/add", {"name": "new", "password": "x"}, login["token"])
        try:
            self.cycle(client)
        finally:
            login = self.server.ask("auth/authenticate", {"name": "root", "password": SECRET})
            self.server.ask("auth/user/delete", {"name": "new"}, login["token"])


class TestWithoutUsers(EtcdSuite):
    """A server that knows no users, in other setups."""

    harness = EtcdHarness()

    def test_login_that_nobody_wants(self) -> None:
        """A cluster without users takes a login for none."""
        self.cycle(self.reach(self.harness.url.replace("//", f"//app:{SECRET}@")))

    def test_channel_of_ones_own(self) -> None:
        """A channel of grpcio's is used as it is, and left open."""
        with grpc.insecure_channel(f"127.0.0.1:{self.harness.proxy.port}") as channel:
            client = self.reach(channel)
            self.hand_over(client)
            client.close()
            again = self.reach(channel)
            self.cycle(again)
            again.close()

    def test_what_is_no_channel(self) -> None:
        """Anything else of grpcio's is refused at once."""
        with pytest.raises(TypeError, match="channel"):
            holdfast.connect(grpc.StatusCode.OK)

    def test_space_is_used_up(self) -> None:
        """A server without space refuses new locks in a sentence; held ones go on, and can be
        given back."""
        with EtcdServer(options={"quota-backend-bytes": str(1024 * 1024)}) as full:
            client = self.reach(full.url, ttl=3)
            lease = self.take(client.lock("x"))
            for number in range(40):
                try:
                    full.ask("kv/put", {"key": key(f"fill{number}"), "value": key("x" * 100_000)})
                except Exception:
                    break
            error = self.raises(holdfast.EngineUnavailable, client.lock("y").try_acquire)
            assert "no space" in str(error)
            heard = self.listen(client)
            heard.until(holdfast.events.Renewed)
            assert lease.held
            assert lease.release() is True
            client.close()


class TestSlowElections(EtcdSuite):
    """A server as it is set up by default: its shortest lease is two seconds."""

    harness = EtcdHarness(options={"heartbeat-interval": "100", "election-timeout": "1000"})

    def test_ttl_below_what_it_keeps(self) -> None:
        """It is refused in a sentence that names the minimum and why; nothing is left."""
        error = self.raises(holdfast.NotSupported, self.client.lock("x", ttl=1).try_acquire)
        for words in ("ttl=1 s", "2 s", "election timeout"):
            assert words in str(error)
        self.until_free()

    def test_ttl_that_it_keeps(self) -> None:
        """At its minimum a lease is kept alive as any other; fractions are rounded up there."""
        for ttl in (1.5, 2):
            lease = self.take(self.client.lock("x", ttl=ttl))
            assert lease.remaining() < ttl
            assert not lease.lost.wait(1.5 * ttl)
            assert lease.held
            assert lease.release() is True

    def test_below_a_second(self) -> None:
        """etcd counts in seconds: less is refused before anything is sent."""
        with pytest.raises(ValueError, match="at least 1 s"):
            self.client.lock("x", ttl=0.9)


class TestRestarts(EtcdSuite):
    """A single server that is killed and started again."""

    harness = EtcdHarness()

    def test_with_its_data(self) -> None:
        """Holders and waiters outlive it: the lease is the same, the queue too."""
        lease = self.take(self.client.lock("x", ttl=5))
        other = self.connect()
        waiter = self.queue(other, other.lock("x", ttl=5))
        self.server.restart(keep_data=True)
        heard = self.listen(self.client)
        heard.until(holdfast.events.Renewed)
        assert lease.held
        assert not waiter.done
        assert lease.release() is True
        second = waiter.result()
        assert second.token > lease.token
        assert second.release() is True

    def test_without_its_data(self) -> None:
        """What it forgot is lost, as soon as anybody asks; locks can be taken again. Tokens begin
        anew: that is why this fault is not promised."""
        assert "server_data_loss" not in self.client.guarantees.exclusive
        lease = self.take(self.client.lock("x", ttl=3))
        started = time.monotonic()
        self.server.restart(keep_data=False)
        self.until_lost(lease)
        assert lease.lost_reason in (Reason.EXPIRED, Reason.UNREACHABLE)
        assert time.monotonic() - started < self.harness.patience
        second = self.take(self.client.lock("x"))
        assert second.release() is True
