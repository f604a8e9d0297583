"""The link to Redis by itself: what a URL says, what a message hides, what is never used again."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import format_exception

import pytest
import redis
import redis.sentinel

import holdfast
from holdfast.clocks import boot_clock
from holdfast.errors import EngineUnavailable, NotSupported, OutcomeUnknown
from holdfast.redis_link import AsyncLink, Link, from_client, from_url, pack
from holdfast.registry import scheme_of
from holdfast.testing.servers import RedisServer, need, redis_program
from holdfast.testing.servers.programs import openssl_program

HOST = "127.0.0.1"
PING = pack(("PING",))
SECRET = "hush-hush"
FILES = Path("/proc/self/fd")

URLS = {
    "redis://": ("redis://localhost:6379/0", "localhost", 6379, "", 0, None, None),
    "redis://h": ("redis://h:6379/0", "h", 6379, "", 0, None, None),
    "redis://h:1/2": ("redis://h:1/2", "h", 1, "", 2, None, None),
    "REDIS://h:1?db=3": ("redis://h:1/3", "h", 1, "", 3, None, None),
    "valkey://:p@h": ("valkey://h:6379/0", "h", 6379, "", 0, None, "p"),
    "redis://u:p@h": ("redis://h:6379/0", "h", 6379, "", 0, "u", "p"),
    "redis://u%40:p%2F%3A@h": ("redis://h:6379/0", "h", 6379, "", 0, "u@", "p/:"),
    "redis://[::1]:7/1": ("redis://[::1]:7/1", "::1", 7, "", 1, None, None),
    "redis+unix:///run/r.sock": (
        "redis+unix:///run/r.sock",
        None,
        None,
        "/run/r.sock",
        0,
        None,
        None,
    ),
    "redis+unix://u:p@/a%20b?db=4": ("redis+unix:///a b?db=4", None, None, "/a b", 4, "u", "p"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """One server for all tests here."""
    with RedisServer(need(redis_program)) as server:
        yield server


@pytest.mark.parametrize("url", URLS)
def test_urls(url: str) -> None:
    """Each part of a URL is where it belongs; the location has all but the login."""
    location, host, port, path, database, username, password = URLS[url]
    found = from_url(url)
    assert found.location == location
    assert (found.path, found.database) == (path, database)
    assert (found.username, found.password) == (username, password)
    assert found.tls is None
    if not path:
        assert (found.host, found.port) == (host, port)


def test_encrypted_url() -> None:
    """rediss:// checks certificate and name unless it is told not to."""
    assert from_url("rediss://h").location == "rediss://h:6379/0"
    strict, loose = from_url("rediss://h").tls, from_url("rediss://h?ssl_cert_reqs=none").tls
    assert strict is not None
    assert strict.check_hostname
    assert loose is not None
    assert not loose.check_hostname
    nameless = from_url("rediss://h?ssl_check_hostname=false").tls
    assert nameless is not None
    assert nameless.verify_mode == strict.verify_mode


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis://u:hush-hush@h:port", "port"),
        ("redis://u:hush-hush@h:99999", "port"),
        ("redis://u:hush-hush@h/db", "database 'db'"),
        ("redis://u:hush-hush@h?what=1", "unknown option 'what'"),
        ("redis://h?password=hush-hush", "unknown option 'password'"),
        ("redis://h?user=a@b&password=hush-hush", "unknown option 'user'"),
        ("redis://u:hush-hush?@h", "port"),
        ("redis+sentinel://u:hush-hush@h:1", "names no service"),
        ("redis+sentinel://u:hush-hush@h:one/s", "port"),
        ("redis+sentinel://u:hush-hush@h:1/s/db", "database 'db'"),
    ],
)
def test_bad_urls(url: str, why: str) -> None:
    """What is wrong with a URL is said in a sentence that does not show its password."""
    with pytest.raises(ValueError, match=why) as caught:
        holdfast.connect(url)
    assert "hush" not in str(caught.value)


def test_settings_do_not_show_the_login() -> None:
    """Neither the settings nor the client that was made of them tell the password to a log."""
    url = f"redis://somebody:{SECRET}@h"
    client = holdfast.connect(url)
    for shown in (repr(from_url(url)), repr(client), repr(client.engine), client.engine.location):
        assert SECRET not in shown
        assert "somebody" not in shown


def test_what_names_an_engine() -> None:
    """A URL, a client of redis-py, or a list of either; nothing else."""
    assert scheme_of("valkey://x") == "valkey"
    assert scheme_of(redis.Redis()) == scheme_of(redis.asyncio.Redis()) == "redis"
    assert scheme_of(["redis://a", redis.Redis()]) == scheme_of(("redis://a",)) == "redlock"
    for other in (object(), 6379, b"redis://", {"host": "h"}):
        with pytest.raises(TypeError, match=f"not by {type(other).__name__}"):
            holdfast.connect(other)


def test_clients_that_do_not_name_a_server() -> None:
    """A Sentinel or a pool is no client: what to use instead is said."""
    for other in (redis.sentinel.Sentinel([("h", 1)]), redis.ConnectionPool()):  # type: ignore[no-untyped-call]
        with pytest.raises(NotSupported, match="master_for"):
            holdfast.connect(other)


def test_client_of_redis_py_with_a_sentinel_that_wants_a_password() -> None:
    """The login of the Sentinels is another than the master's: both are taken over."""
    made = redis.sentinel.Sentinel(  # type: ignore[no-untyped-call]
        [(HOST, 1)], sentinel_kwargs={"password": "theirs"}, password=SECRET
    )
    lent = made.master_for("boss")  # type: ignore[no-untyped-call]
    found = from_client(lent)
    assert found.password == SECRET
    assert found.location == "redis+sentinel://boss/0"
    with holdfast.connect(lent) as client, pytest.raises(EngineUnavailable) as caught:
        client.ping()
    assert f"{HOST}:1" in str(caught.value)
    shown = repr(found) + "".join(format_exception(caught.value))
    assert "theirs" not in shown
    assert "MasterNotFoundError:" not in shown, "redis-py's own words may show a password"


@pytest.mark.parametrize(
    ("missing", "url"),
    [("hiredis", "redis://h"), ("redis", "redis+sentinel://127.0.0.1:1/boss")],
)
def test_missing_driver(missing: str, url: str) -> None:
    """Without its driver the engine says which extra to install."""
    code = f"""if True:
        import sys
        sys.modules[{missing!r}] = None
        import holdfast
        try:
            holdfast.connect({url!r}).ping()
        except holdfast.MissingDriver as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert 'pip install "holdfast[redis]"' in done.stdout, done.stderr
    assert missing in done.stdout


# --- Replies that come in pieces. ---


class Relay:
    """Forwards one connection until a large request; of the reply to it, only the first bytes."""

    def __init__(self, target: int) -> None:
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._target = target
        self._stuck = threading.Event()
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection((HOST, self._target))
        self._sockets += [client, server]
        for pump in (lambda: self._pump(client, server), lambda: self._answer(server, client)):
            threading.Thread(target=pump, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        while chunk := self._read(source):
            if len(chunk) > 2000:
                self._stuck.set()
            sink.sendall(chunk)

    def _answer(self, source: socket.socket, sink: socket.socket) -> None:
        while chunk := self._read(source):
            if self._stuck.is_set():
                sink.sendall(chunk[:3])
                return
            sink.sendall(chunk)

    def _read(self, source: socket.socket) -> bytes:
        try:
            return source.recv(65536)
        except OSError:
            return b""

    def close(self) -> None:
        """End it all."""
        for one in self._sockets:
            one.close()


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_half_a_reply_is_none(tls: bool, first: bool) -> None:
    """A reply that stops in the middle, encrypted or not, costs the time-out and no more."""
    if tls:
        need(openssl_program)
    with RedisServer(need(redis_program), tls=tls) as server:
        relay = Relay(server.port)
        scheme, options = ("rediss", f"?ssl_ca_certs={server.ca_file}") if tls else ("redis", "")
        link = Link(from_url(f"{scheme}://{HOST}:{relay.port}/0{options}"), boot_clock)
        if not first:
            assert link.call(PING, 5.0) == b"PONG"
        errors: list[BaseException] = []

        def ask() -> None:
            try:
                link.call(pack(("ECHO", "x" * 3000)), 0.4)
            except OutcomeUnknown as error:
                errors.append(error)

        asking = threading.Thread(target=ask, daemon=True)
        started = time.monotonic()
        asking.start()
        asking.join(10)
        assert len(errors) == 1, "it hangs" if asking.is_alive() else "no error"
        assert time.monotonic() - started < 5
        link.close()
        relay.close()


@pytest.mark.parametrize("size", [100, 300_000])
def test_large_messages(server: RedisServer, size: int) -> None:
    """Requests and replies of any size pass, on a new connection and on an old one."""
    request, reply = pack(("ECHO", "x" * size)), b"x" * size

    async def main() -> None:
        link = AsyncLink(from_url(server.url), boot_clock)
        assert await link.call(request, 5.0) == reply
        assert await link.call(request, 5.0) == reply
        await link.close()

    link = Link(from_url(server.url), boot_clock)
    assert link.call(request, 5.0) == reply
    assert link.call(request, 5.0) == reply
    link.close()
    asyncio.run(main())


def test_many_threads_at_once(server: RedisServer) -> None:
    """Each gets its own reply, whatever the others ask."""
    link = Link(from_url(server.url), boot_clock)
    wrong: list[object] = []

    def ask(number: int) -> Callable[[], None]:
        def run() -> None:
            for step in range(50):
                word = f"{number}-{step}"
                if link.call(pack(("ECHO", word)), 5.0) != word.encode():
                    wrong.append(word)

        return run

    threads = [threading.Thread(target=ask(number)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong
    link.close()
