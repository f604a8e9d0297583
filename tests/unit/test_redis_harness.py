"""The Redis harnesses start real servers and reach them through their proxies."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from holdfast.testing import Harness
from holdfast.testing.redis_harness import RedisHarness, RedlockHarness, ValkeyHarness
from holdfast.testing.servers import Proxy
from holdfast.testing.servers.resp import run_commands
from tests.unit.waiting import PATIENCE

HOOKS = ("cut", "heal", "pause", "resume", "restart")


def answers(port: int, timeout: float = PATIENCE) -> bool:
    """Say whether a server answers on a port."""
    try:
        return bool(run_commands(port, ("PING",), timeout=timeout) == "PONG")
    except OSError:
        return False


def is_silent(port: int) -> bool:
    """Say whether none does, for a moment."""
    return not answers(port, 0.1)


@pytest.mark.parametrize("kind", [RedisHarness, ValkeyHarness])
def test_one_server(kind: type[RedisHarness]) -> None:
    """Its URL leads through the proxy, and every hook does what it says."""
    harness = kind(persist=True)
    assert isinstance(harness, Harness)
    assert harness.supports(*HOOKS)
    harness.start()
    try:
        parts = urlsplit(harness.url)
        assert (parts.scheme, parts.hostname, parts.path) == ("redis", "127.0.0.1", "/0")
        port = parts.port
        assert port == harness.proxy.port != harness.server.port
        assert answers(port)
        harness.cut()
        assert is_silent(port)
        harness.heal()
        assert answers(port)
        harness.pause()
        assert is_silent(port)
        harness.resume()
        assert answers(port)
        harness.server.command("SET", "x", "1")
        harness.restart(keep_data=True)
        assert answers(port)
        assert harness.server.command("GET", "x") == "1"
        harness.restart(keep_data=False)
        assert harness.server.command("GET", "x") is None
    finally:
        harness.stop()
    assert is_silent(port)


def test_several_servers() -> None:
    """Each node has a proxy of its own; hooks reach all, the lists each."""
    harness = RedlockHarness(nodes=3)
    assert harness.supports(*HOOKS)
    harness.start()
    try:
        ports = [proxy.port for proxy in harness.proxies]
        assert harness.url == "redlock://" + ",".join(f"127.0.0.1:{port}" for port in ports)
        assert len(harness.servers) == 3
        harness.proxies[0].cut()
        harness.servers[1].kill()
        assert [is_silent(port) for port in ports] == [True, True, False]
        harness.heal()
        harness.servers[1].start()
        assert all(map(answers, ports))
        harness.cut()
        assert all(map(is_silent, ports))
        harness.heal()
        harness.pause()
        assert all(map(is_silent, ports))
        harness.resume()
        assert all(map(answers, ports))
        harness.servers[2].kill()
    finally:
        harness.stop()
    assert not any(server.running for server in harness.servers)


def test_harness_starts_nothing_until_told_and_starts_again() -> None:
    """It is made when a test file is imported, and each start is afresh."""
    harness = RedisHarness()
    assert harness.servers == []
    harness.stop()
    for _ in range(2):
        harness.start()
        assert answers(harness.proxy.port)
        harness.stop()


def test_start_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a node cannot be started, those before it are stopped."""
    made: list[Proxy] = []

    def refuse(port: int) -> Proxy:
        if made:
            raise OSError("no more")
        made.append(Proxy(port))
        return made[0]

    monkeypatch.setattr("holdfast.testing.redis_harness.Proxy", refuse)
    harness = RedlockHarness(nodes=2)
    with pytest.raises(OSError, match="no more"):
        harness.start()
    assert not any(server.running for server in harness.servers)
    assert is_silent(made[0].port)
