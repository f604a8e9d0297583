"""The proxy does to connections what it says, and nothing else."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.testing.servers import Proxy, RedisServer, need, redis_program
from holdfast.testing.servers.ports import LOOPBACK
from holdfast.testing.servers.resp import encode, read_reply, run_commands
from tests.unit.waiting import PATIENCE, until

SILENCE = 0.1  # how long nothing is heard before a test believes it


class Client:
    """A connection to the proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self.socket = socket.create_connection((LOOPBACK, proxy.port), PATIENCE)
        self.stream = self.socket.makefile("rb")

    def ask(self, *words: object) -> Any:
        """Send a command and return the reply."""
        self.send(*words)
        return self.hear()

    def send(self, *words: object) -> None:
        """Send a command."""
        self.socket.sendall(encode(words))

    def hear(self) -> Any:
        """Return the next reply."""
        return read_reply(self.stream)

    @property
    def hears_nothing(self) -> bool:
        """Whether nothing comes, not even the end."""
        self.socket.settimeout(SILENCE)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(PATIENCE)
        return False

    @property
    def is_over(self) -> bool:
        """Whether the other side has ended the connection; waits for it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """End the connection."""
        self.stream.close()
        self.socket.close()


class Network:
    """A server behind a proxy, and its clients."""

    def __init__(self, server: RedisServer) -> None:
        self.server, self.proxy = server, Proxy(server.port)
        self.clients: list[Client] = []

    def client(self) -> Client:
        """Return one more client."""
        client = Client(self.proxy)
        self.clients.append(client)
        return client

    def subscriber(self, channel: str = "news") -> Client:
        """Return one more client that has subscribed."""
        client = self.client()
        assert client.ask("SUBSCRIBE", channel) == ["subscribe", channel, 1]
        return client

    def close(self) -> None:
        """End it all."""
        for client in self.clients:
            client.close()
        self.proxy.close()


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """One server for all tests here."""
    with RedisServer(need(redis_program)) as server:
        yield server


@pytest.fixture
def network(server: RedisServer) -> Iterator[Network]:
    """An empty server and a fresh proxy before it."""
    server.command("FLUSHALL")
    network = Network(server)
    yield network
    network.close()


def test_forwards_and_counts(network: Network) -> None:
    """Requests and open connections are counted; those to the server itself are not."""
    one, two = network.client(), network.client()
    assert one.ask("SET", "x", "1") == "OK"
    assert two.ask("GET", "x") == "1"
    assert one.ask("GET", "x") == "1"
    # It is counted a moment after it was sent on, so the answer may be here first.
    until(lambda: (network.proxy.requests, network.proxy.connections) == (3, 2))
    one.close()
    until(lambda: network.proxy.connections == 1)
    assert network.proxy.requests == 3


def test_large_messages(network: Network) -> None:
    """Megabytes pass in both directions, whole and in order."""
    client = network.client()
    text = "0123456789abcdef" * 400_000
    assert client.ask("SET", "x", text) == "OK"
    assert client.ask("GET", "x") == text


def test_cut_is_silent_and_heal_delivers(network: Network) -> None:
    """While cut nothing arrives and no connection ends; what was sent arrives afterwards."""
    old = network.client()
    assert old.ask("PING") == "PONG"
    network.proxy.cut()
    new = network.client()
    old.send("SET", "old", "1")
    new.send("SET", "new", "1")
    assert old.hears_nothing
    assert new.hears_nothing
    assert network.server.command("KEYS", "*") == []
    network.proxy.heal()
    assert old.hear() == "OK"
    assert new.hear() == "OK"
    assert network.server.command("DBSIZE") == 2


def test_reply_and_push_under_way_are_cut_too(network: Network) -> None:
    """Neither a push nor the end of a connection passes, before heal."""
    client = network.subscriber()
    network.proxy.cut()
    network.server.command("PUBLISH", "news", "1")
    network.server.command("CLIENT", "KILL", "TYPE", "pubsub")
    assert client.hears_nothing
    network.proxy.heal()
    assert client.hear() == ["message", "news", "1"]
    assert client.is_over


def test_request_of_a_client_that_gave_up_arrives_late(network: Network) -> None:
    """A closed connection takes nothing back: what was sent before arrives when it is healed."""
    client = network.client()
    assert client.ask("PING") == "PONG"
    network.proxy.cut()
    client.send("SET", "ghost", "1")
    client.close()
    assert network.server.command("GET", "ghost") is None
    network.proxy.heal()
    until(lambda: network.server.command("GET", "ghost") == "1")
    until(lambda: network.proxy.connections == 0)


def test_drop_replies(network: Network) -> None:
    """Requests are executed and replies lost, on every connection; heal ends those that lost."""
    old, idle = network.client(), network.client()
    assert idle.ask("PING") == "PONG"
    network.proxy.drop_replies()
    new = network.client()
    old.send("SET", "old", "1")
    new.send("SET", "new", "1")
    until(lambda: network.server.command("DBSIZE") == 2)
    assert old.hears_nothing
    assert new.hears_nothing
    network.proxy.heal()
    assert old.is_over
    assert new.is_over
    assert idle.ask("GET", "old") == "1"


def test_drop_some_replies(network: Network) -> None:
    """With a count only that many connections are concerned, and those until heal."""
    one, two = network.client(), network.client()
    network.proxy.drop_replies(1)
    one.send("SET", "x", "1")
    assert one.hears_nothing
    assert two.ask("GET", "x") == "1"
    one.send("SET", "x", "2")
    assert one.hears_nothing
    assert two.ask("GET", "x") == "2"


def test_drop_next_reply(network: Network) -> None:
    """One request is executed and its reply lost with the connection; nothing else is."""
    one, two = network.client(), network.client()
    dropped = network.proxy.drop_next_reply(b"needle")
    assert one.ask("SET", "x", "1") == "OK"
    assert not dropped.is_set()
    one.send("SET", "needle", "1")
    assert one.is_over
    assert dropped.wait(PATIENCE)
    assert two.ask("GET", "needle") == "1"


def test_traps_do_not_outlive_heal(network: Network) -> None:
    """A reply that was to be dropped and was not asked for yet is safe after heal."""
    dropped = network.proxy.drop_next_reply(b"needle")
    network.proxy.heal()
    assert network.client().ask("SET", "needle", "1") == "OK"
    assert not dropped.is_set()


@pytest.mark.parametrize("subscribe", ["SUBSCRIBE", "subscribe", "SSUBSCRIBE", "PSUBSCRIBE"])
def test_drop_pushes(network: Network, subscribe: str) -> None:
    """Only connections that have subscribed hear nothing, and they go on afterwards."""
    listener, other = network.client(), network.client()
    listener.ask(subscribe, "news")
    publish = "SPUBLISH" if subscribe == "SSUBSCRIBE" else "PUBLISH"
    network.proxy.drop_pushes()
    assert other.ask(publish, "news", "1") == 1
    assert listener.hears_nothing
    network.proxy.heal()
    assert other.ask(publish, "news", "2") == 1
    assert listener.hear()[-1] == "2"


def test_hold_pushes(network: Network) -> None:
    """Pushes wait for heal, then come in their order; replies do not wait."""
    listener, other = network.subscriber(), network.client()
    network.proxy.hold_pushes()
    assert other.ask("PUBLISH", "news", "1") == 1
    assert other.ask("PUBLISH", "news", "2") == 1
    assert listener.hears_nothing
    network.proxy.heal()
    assert [listener.hear()[-1], listener.hear()[-1]] == ["1", "2"]


def test_close_all(network: Network) -> None:
    """Every connection ends at once, and new ones are welcome."""
    one, two = network.client(), network.client()
    assert one.ask("PING") == two.ask("PING") == "PONG"
    network.proxy.close_all()
    assert network.proxy.connections == 0
    assert one.is_over
    assert two.is_over
    assert network.client().ask("PING") == "PONG"


def test_delay(network: Network) -> None:
    """Replies come later by that much, in their order, until heal."""
    client = network.client()
    network.proxy.delay(0.1)
    started = time.monotonic()
    assert client.ask("INCR", "x") == 1
    assert time.monotonic() - started >= 0.1
    network.proxy.delay(0.01)
    assert [client.ask("INCR", "x") for _ in range(3)] == [2, 3, 4]
    network.proxy.heal()
    assert client.ask("INCR", "x") == 5


def test_lag(network: Network) -> None:
    """Requests and replies are noticed later, until it is taken away: `heal` is for faults."""
    client = network.client()
    network.proxy.lag = 0.1
    started = time.monotonic()
    assert client.ask("INCR", "x") == 1
    assert time.monotonic() - started >= 0.1  # a request may come while the proxy lags already
    network.proxy.heal()
    network.proxy.lag = 0.0
    assert client.ask("INCR", "x") == 2


def test_server_that_dies_and_comes_back() -> None:
    """Its connections end, new ones end as long as it is away, and work when it is back."""
    with RedisServer(need(redis_program)) as server, Proxy(server.port) as proxy:
        client = Client(proxy)
        assert client.ask("PING") == "PONG"
        server.kill()
        assert client.is_over
        client.close()
        with pytest.raises(ConnectionError):
            run_commands(proxy.port, ("PING",))
        server.start()
        client = Client(proxy)
        assert client.ask("PING") == "PONG"
        client.close()


def test_close(network: Network) -> None:
    """A closed proxy refuses connections and orders, and may be closed again."""
    client = network.client()
    assert client.ask("PING") == "PONG"
    network.proxy.close()
    assert client.is_over
    with pytest.raises(ConnectionRefusedError):
        Client(network.proxy)
    with pytest.raises(ValueError, match="closed"):
        network.proxy.cut()
    network.proxy.close()
