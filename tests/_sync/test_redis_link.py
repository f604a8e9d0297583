"""(Generated from _async/test_redis_link.py by tools/unasync.py: do not edit.) Every way to reach a Redis server leads to a lock; what is refused is said in a sentence."""

from __future__ import annotations

import logging
import socket
import time
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
import redis
import redis.asyncio

import holdfast
from holdfast.testing.redis_harness import RedisHarness
from holdfast.testing.running import elapsed
from holdfast.testing.servers import need
from holdfast.testing.servers.certificates import make_certificate
from holdfast.testing.servers.programs import openssl_program
from tests._sync.redis_suite import RedisSuite

HOST = "127.0.0.1"
SECRET = "hush-hush"
RIGHTS = ("on", f">{SECRET}", "~{*", "+@all")

# What redis-py calls a client: the settings are the same in both colours, and so are accepted.
driver = pytest.mark.parametrize("kind", [redis.Redis, redis.asyncio.Redis])


class TestWays(RedisSuite):
    """Addresses, databases, and clients of redis-py in place of a URL."""

    harness = RedisHarness(options={"unixsocket": "redis.sock"})

    @property
    def path(self) -> Path:
        """The Unix socket of the server."""
        return self.server.directory / "data" / "redis.sock"

    def test_unix_socket(self) -> None:
        """redis+unix:// takes and hands over locks through a socket file, in any database."""
        client = self.reach(f"redis+unix://{self.path}?db=4")
        assert client.engine.location == f"redis+unix://{self.path}?db=4"
        self.hand_over(client)
        assert self.server.command("EXISTS", self.key("x")) == 0, "that is database 0"

    def test_missing_unix_socket(self) -> None:
        """A path where nobody listens is EngineUnavailable, and names the path."""
        client = self.reach(f"redis+unix://{self.path}.not", connect_timeout=0.2)
        error = self.raises(holdfast.EngineUnavailable, client.ping)
        assert f"{self.path}.not" in str(error)

    @pytest.mark.parametrize("ending", ["/3", "?db=3", "/0?db=3"])
    def test_database_number(self, ending: str) -> None:
        """The records are in the database of the URL; those of another do not exclude them."""
        client = self.reach(f"redis://{HOST}:{self.server.port}{ending}")
        assert client.engine.location == f"redis://{HOST}:{self.server.port}/3"
        lease = self.take(client.lock("x"))
        assert self.server.command("EXISTS", self.key("x")) == 0
        self.cycle(self.client)
        same = self.reach(f"redis://{HOST}:{self.server.port}/3")
        assert same.lock("x").try_acquire() is None
        assert lease.release() is True

    def test_missing_database(self) -> None:
        """A database number that the server does not have is refused in its words."""
        client = self.reach(f"redis://{HOST}:{self.server.port}/99", connect_timeout=0.2)
        error = self.raises(holdfast.EngineUnavailable, client.ping)
        assert "DB index is out of range" in str(error)

    @pytest.mark.parametrize("family", [socket.AF_INET6, socket.AF_APPLETALK])
    def test_every_address_is_tried(
        self, family: socket.AddressFamily, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`localhost` is ::1 first on many machines: a server only on 127.0.0.1 is found, also
        where the machine knows no such addresses at all."""
        port = self.server.port

        def find(*_: Any, **__: Any) -> list[Any]:
            stream, tcp = socket.SOCK_STREAM, socket.IPPROTO_TCP
            first = (family, stream, tcp, "", ("::1", port, 0, 0))
            return [first, (socket.AF_INET, stream, tcp, "", (HOST, port))]

        monkeypatch.setattr(socket, "getaddrinfo", find)
        client = self.reach(f"redis://localhost:{port}")
        self.hand_over(client)

    def test_nobody_there(self) -> None:
        """A port where nobody listens is EngineUnavailable at once, whatever the time-out."""
        client = self.reach(f"redis://{HOST}:1", connect_timeout=20)
        started = time.monotonic()
        error = self.raises(holdfast.EngineUnavailable, client.ping)
        self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert elapsed(started) < 5
        assert f"redis://{HOST}:1/0" in str(error)

    @driver
    def test_client_of_redis_py(self, kind: Any) -> None:
        """It lends its settings and keeps its connections: not one is opened or used."""
        lent = kind(host=HOST, port=self.server.port, db=5)
        client = self.reach(lent)
        assert client.engine.location == f"redis://{HOST}:{self.server.port}/5"
        self.hand_over(client)
        assert self.server.command("EXISTS", self.key("x")) == 0
        same = self.reach(f"redis://{HOST}:{self.server.port}/5")
        assert self.cycle(same) > 0
        mine = self.server.command("CLIENT", "LIST").count("lib-name=redis-py")
        assert mine == 0

    @driver
    def test_client_of_redis_py_on_a_unix_socket(self, kind: Any) -> None:
        """The path of its socket is taken over too."""
        client = self.reach(kind(unix_socket_path=str(self.path), db=6))
        assert client.engine.location == f"redis+unix://{self.path}?db=6"
        self.cycle(client)

    def test_own_subclass_of_a_client(self) -> None:
        """What derives from redis.Redis is one."""

        class Mine(redis.Redis):
            pass

        self.cycle(self.reach(Mine(host=HOST, port=self.server.port)))


class TestLogin(RedisSuite):
    """Passwords, users and their rights."""

    harness = RedisHarness(options={"requirepass": SECRET})

    def user(self, *rights: str) -> str:
        """Make a user with these rights and return its name."""
        name = f"user-{token_hex(4)}"
        self.server.command("ACL", "SETUSER", name, *RIGHTS, *rights)
        return name

    def at(self, login: str, **options: Any) -> holdfast.Client:
        """Return a client that logs in so."""
        options = {"connect_timeout": 0.3, **options}
        return self.reach(f"redis://{login}{HOST}:{self.server.port}/0", **options)

    def test_password(self) -> None:
        """`:password@` logs in; the client shows neither the password nor the user."""
        client = self.at(f":{SECRET}@")
        self.hand_over(client)
        assert SECRET not in repr(client) + client.engine.location

    def test_user(self) -> None:
        """`user:password@` logs in as that user, with no more rights than its keys and channels."""
        name = self.user("&holdfast:*", "-@dangerous", "+info")
        client = self.at(f"{name}:{SECRET}@")
        self.hand_over(client)
        assert f"user={name}" in self.server.command("CLIENT", "LIST")
        assert name not in repr(client) + client.engine.location

    def test_password_with_special_characters(self) -> None:
        """What a URL needs encoded is decoded before it is sent."""
        word = "p@ss/w:rd?#%"
        name = self.user("&*", f">{word}")
        self.cycle(self.at(f"{name}:p%40ss%2Fw%3Ard%3F%23%25@"))

    @driver
    def test_client_of_redis_py(self, kind: Any) -> None:
        """User and password of a redis-py client are taken over, also from its provider."""
        name = self.user("&*")
        lent = kind(host=HOST, port=self.server.port, username=name, password=SECRET)
        self.cycle(self.reach(lent))
        provider = redis.UsernamePasswordCredentialProvider(name, SECRET)
        lent = kind(host=HOST, port=self.server.port, credential_provider=provider)
        self.cycle(self.reach(lent))

    @pytest.mark.parametrize(
        ("login", "why"),
        [
            ("", "wants a password"),
            (":wrong-hush@", "does not accept the user or password"),
            ("nobody:wrong-hush@", "does not accept the user or password"),
        ],
    )
    def test_wrong_login_is_refused_and_not_shown(
        self, login: str, why: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Each call says why it cannot go on; no error, event or log line shows the password."""
        caplog.set_level(logging.DEBUG)
        client = self.at(login)
        heard = self.listen(client)
        errors: list[holdfast.EngineUnavailable] = []
        for call in (
            client.ping,
            lambda: client.inspect("x"),
            client.locks,
            lambda: client.force_release("x"),
            client.lock("x").try_acquire,
        ):
            errors.append(self.raises(holdfast.EngineUnavailable, call))
            assert why in str(errors[-1])
        wait = client.lock("x", timeout=0.2).acquire
        errors.append(self.raises(holdfast.EngineUnavailable, wait))
        assert why in str(errors[-1])
        heard.until(holdfast.events.Missed, 2)
        client.close()
        shown = [*map(repr, errors), *map(str, heard.events), caplog.text, repr(client)]
        assert "wrong-hush" not in "".join(shown)

    def test_too_few_rights_are_named(self) -> None:
        """A user without rights to the keys gets a sentence, and no lock."""
        client = self.at(f"{self.user('resetkeys', '&*')}:{SECRET}@")
        error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "lacks rights" in str(error)

    def test_quarantine_without_the_right_to_ask(self) -> None:
        """Where the server may not say since when it runs, quarantine=True grants nothing."""
        login = f"{self.user('&*', '-info')}:{SECRET}@"
        client = self.at(login, quarantine=True)
        error = self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)
        assert "allow INFO" in str(error)
        self.cycle(self.at(login))

    def test_user_without_channels(self) -> None:
        """Without the right to any channel nothing can be pushed: waiters get in by timers, long
        before a TTL is over, and in the order of their arrival."""
        name = self.user("resetchannels")
        client = self.at(f"{name}:{SECRET}@", ttl=30)
        lease = self.take(client.lock("x"))
        first = self.queue(client, client.lock("x"))
        other = self.at(f"{name}:{SECRET}@", ttl=30)
        second = self.queue(other, other.lock("x"))
        started = time.monotonic()
        assert lease.release() is True
        one = first.result()
        assert not second.done
        assert one.release() is True
        two = second.result()
        assert elapsed(started) < 10
        assert lease.token < one.token < two.token
        assert two.release() is True

    def test_user_without_channels_is_not_starved(self) -> None:
        """It is served in its turn also among others who hear pushes; it cannot push to them, so
        whoever comes after it waits for the end of a TTL, not longer."""
        deaf = self.at(f"{self.user('resetchannels')}:{SECRET}@", ttl=30)
        client = self.at(f":{SECRET}@", ttl=30)
        lease = self.take(client.lock("x", ttl=1))
        first = self.queue(deaf, deaf.lock("x"))
        second = self.queue(client, client.lock("x"))
        assert lease.release() is True
        one = first.result()
        assert not second.done
        assert one.release() is True
        two = second.result()
        assert lease.token < one.token < two.token
        assert two.release() is True


class TestTls(RedisSuite):
    """Encrypted connections."""

    harness = RedisHarness(tls=True)

    @classmethod
    def setup_class(cls) -> None:
        """Start the server, if a certificate can be made."""
        need(openssl_program)
        super().setup_class()

    def at(self, options: str, port: int | None = None) -> holdfast.Client:
        """Return a client with these options in its URL."""
        url = f"rediss://{HOST}:{port or self.server.port}/0?{options}"
        return self.reach(url, connect_timeout=0.5)

    def test_own_authority(self) -> None:
        """With the authority of the server's certificate locks are taken, and pushed."""
        client = self.at(f"ssl_ca_certs={self.server.ca_file}")
        assert client.engine.location == f"rediss://{HOST}:{self.server.port}/0"
        self.hand_over(client)

    @pytest.mark.parametrize("trust", ["another", "system"])
    def test_wrong_authority_is_refused(self, trust: str, tmp_path: Path) -> None:
        """A certificate that cannot be checked is refused with a sentence that says so."""
        options = "" if trust == "system" else f"ssl_ca_certs={make_certificate(tmp_path)[0]}"
        client = self.at(options)
        for call in (client.ping, client.lock("x").try_acquire):
            error = self.raises(holdfast.EngineUnavailable, call)
            assert "certificate verify failed" in str(error)
            assert "ssl_ca_certs" in str(error)

    def test_unchecked(self) -> None:
        """ssl_cert_reqs=none, in redis-py's words, takes any certificate."""
        self.cycle(self.at("ssl_cert_reqs=none"))

    @driver
    def test_client_of_redis_py(self, kind: Any) -> None:
        """A client that speaks TLS lends that too."""
        lent = kind(
            host=HOST, port=self.server.port, ssl=True, ssl_ca_certs=str(self.server.ca_file)
        )
        client = self.reach(lent)
        assert client.engine.location == f"rediss://{HOST}:{self.server.port}/0"
        self.hand_over(client)

    def test_plain_words_to_a_server_with_tls(self) -> None:
        """redis:// where rediss:// is spoken is EngineUnavailable, in time."""
        client = self.reach(f"redis://{HOST}:{self.server.port}/0", connect_timeout=1.0)
        self.raises(holdfast.EngineUnavailable, client.ping)
        self.raises(holdfast.EngineUnavailable, client.lock("x").try_acquire)

    def test_silence(self) -> None:
        """A server that falls silent costs the time-out and no more, encrypted or not."""
        client = self.at(f"ssl_ca_certs={self.server.ca_file}", self.proxy.port)
        self.cycle(client)
        self.proxy.cut()
        started = time.monotonic()
        self.raises(holdfast.EngineUnavailable, client.ping)
        self.raises(holdfast.EngineUnavailable, client.ping)
        assert 0.9 < elapsed(started) < 5
        self.proxy.heal()
        self.cycle(client)
