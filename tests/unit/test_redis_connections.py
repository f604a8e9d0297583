"""Connections to Redis: which are never used again, and what is left of them in the end."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import aio
from holdfast._concurrency import Reader
from holdfast.clocks import boot_clock
from holdfast.errors import EngineUnavailable, OutcomeUnknown
from holdfast.redis_link import AsyncLink, Link, Settings, from_url, pack
from holdfast.redis_link.connection import Connection
from holdfast.testing.servers import Proxy, RedisServer, need, redis_program
from tests.unit.waiting import until

HOST = "127.0.0.1"
PING = pack(("PING",))
FILES = Path("/proc/self/fd")


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """One server for all tests here."""
    with RedisServer(need(redis_program)) as server:
        yield server


def links(server: RedisServer) -> set[str]:
    """Return the ids of our connections that the server knows."""
    lines = server.command("CLIENT", "LIST").splitlines()
    return {line.split()[0] for line in lines if "name=holdfast" in line}


def at(proxy: Proxy) -> Settings:
    """Return the settings that lead through a proxy."""
    return from_url(f"redis://{HOST}:{proxy.port}")


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals to threads")
def test_interrupted_thread(server: RedisServer) -> None:
    """Ctrl-C while a reply is awaited: the connection is closed, the next call makes another, and
    does not take the late reply for its own."""
    with Proxy(server.port) as proxy:
        link = Link(at(proxy), boot_clock)
        assert link.call(PING, 5.0) == b"PONG"
        before = links(server)
        proxy.delay(0.5)
        main = threading.main_thread().ident
        assert main is not None
        timer = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            link.call(pack(("ECHO", "first")), 5.0)
        timer.join()
        proxy.heal()
        assert link.call(pack(("ECHO", "second")), 5.0) == b"second"
        until(lambda: not before & links(server))
        link.close()


def test_cancelled_task(server: RedisServer) -> None:
    """A cancelled request takes its connection with it once others on it have their answers."""

    async def main() -> None:
        link = AsyncLink(at(proxy), boot_clock)
        assert await link.call(PING, 5.0) == b"PONG"
        before = links(server)
        proxy.delay(0.3)
        first = asyncio.create_task(link.call(pack(("ECHO", "first")), 5.0))
        other = asyncio.create_task(link.call(pack(("ECHO", "other")), 5.0))
        await asyncio.sleep(0.05)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await link.call(pack(("ECHO", "second")), 5.0) == b"second"
        assert await other == b"other"
        await asyncio.to_thread(until, lambda: not before & links(server))
        await link.close()

    with Proxy(server.port) as proxy:
        asyncio.run(main())


def test_timed_out_task(server: RedisServer) -> None:
    """A time-out is its own: what others asked on the same connection is still answered."""

    async def main() -> None:
        link = AsyncLink(at(proxy), boot_clock)
        assert await link.call(PING, 5.0) == b"PONG"
        before = links(server)
        proxy.delay(0.3)
        impatient = asyncio.create_task(link.call(pack(("ECHO", "first")), 0.1))
        patient = asyncio.create_task(link.call(pack(("ECHO", "other")), 5.0))
        with pytest.raises(OutcomeUnknown):
            await impatient
        assert await link.call(pack(("ECHO", "second")), 5.0) == b"second"
        assert await patient == b"other"
        await asyncio.to_thread(until, lambda: not before & links(server))
        await link.close()

    with Proxy(server.port) as proxy:
        asyncio.run(main())


def test_a_task_that_comes_too_late_is_told_so(server: RedisServer) -> None:
    """Whoever gets a connection that has ended meanwhile is not left waiting for ever."""

    async def main() -> None:
        link = AsyncLink(from_url(server.url), boot_clock)
        assert await link.call(PING, 5.0) == b"PONG"
        stream = link._stream
        assert stream is not None
        stream.abort()
        for _ in range(3):
            with pytest.raises(EngineUnavailable):
                await asyncio.wait_for(stream.ask(PING, 60.0), 10)
            await asyncio.sleep(0)  # meanwhile the loop says that it is lost
        assert await link.call(PING, 5.0) == b"PONG"
        await link.close()

    asyncio.run(main())


def test_a_message_that_comes_with_the_subscription(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is told something the moment it listens hears that, and all that follows."""
    receive = Connection.receive
    seen: list[int] = []

    def receive_both(self: Connection, looked: bool) -> None:
        if not seen:
            seen.append(1)
            server.command("PUBLISH", "mail", "first")
            until(lambda: b"first" in self.socket.recv(1000, socket.MSG_PEEK))
        receive(self, looked)

    monkeypatch.setattr(Connection, "receive", receive_both)
    heard: list[bytes] = []
    link, reader = Link(from_url(server.url), boot_clock), Reader("holdfast-test")
    try:
        assert link.listen(reader, b"mail", heard.append, lambda: heard.append(b"lost"), 5.0)
        assert heard == [b"first"]
        server.command("PUBLISH", "mail", "second")
        until(lambda: len(heard) == 2)
        assert heard == [b"first", b"second"]
    finally:
        reader.close()
        link.close()


def test_an_answer_that_nobody_asked_for(server: RedisServer) -> None:
    """A server that says more than it was asked is not understood: no later request may take that
    for its answer."""
    link = Link(from_url(server.url), boot_clock)
    with pytest.raises(OutcomeUnknown, match="nobody had asked for"):
        link.call(PING + PING, 5.0)
    assert link.call(pack(("ECHO", "own")), 5.0) == b"own"
    link.close()


def test_closed_client_leaves_no_connection(server: RedisServer) -> None:
    """Closing a client, in either colour, ends all its connections."""

    async def main() -> None:
        async with aio.connect(server.url) as client, client.lock("x"):
            assert len(links(server)) == 2

    asyncio.run(main())
    until(lambda: not links(server))
    with holdfast.connect(server.url) as client, client.lock("x"):
        assert len(links(server)) == 2
    until(lambda: not links(server))


@pytest.mark.skipif(not FILES.is_dir(), reason="cannot count open files here")
def test_closed_client_leaves_no_file_open(server: RedisServer) -> None:
    """Opening and closing clients over and over uses up no file descriptors."""

    def once() -> int:
        with holdfast.connect(server.url) as client, client.lock("x"):
            pass
        return len(list(FILES.iterdir()))

    before = once()
    for _ in range(20):
        assert once() <= before
