"""What is special about Redis as a test server: its clock, TLS, replicas and Sentinel."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable

import pytest

from holdfast.testing.servers import (
    RedisSentinel,
    RedisServer,
    need,
    redis_program,
    valkey_program,
)
from holdfast.testing.servers.certificates import make_certificate
from holdfast.testing.servers.programs import faketime_library, openssl_program
from holdfast.testing.servers.resp import run_commands
from tests.unit.waiting import until


@pytest.fixture(autouse=True)
def program() -> str:
    """Redis itself: without it there is nothing to test."""
    return need(redis_program)


def ahead(server: RedisServer) -> float:
    """Return how far the server's clock is ahead, in seconds."""
    seconds, microseconds = server.command("TIME")
    return float(int(seconds) + int(microseconds) / 1e6 - time.time())


@pytest.mark.parametrize("find", [redis_program, valkey_program])
def test_clock_steps(find: Callable[[], str]) -> None:
    """The wall clock goes where it is told, both ways and back, and keys expire by it."""
    need(faketime_library)
    with RedisServer(need(find), fake_clock=True) as server:
        assert ahead(server) == pytest.approx(0, abs=0.5)
        server.command("SET", "x", "1", "EX", "1000")
        for offset in (600.0, -60.5, 0.0, 3600.0):
            assert server.command("GET", "x") == "1"
            server.step_clock(offset)
            assert ahead(server) == pytest.approx(offset, abs=0.5)
        assert server.command("GET", "x") is None


def test_clock_stays_where_it_is_over_a_restart() -> None:
    """A step is the machine's: the server that is started again sees the same clock."""
    need(faketime_library)
    with RedisServer(fake_clock=True) as server:
        server.step_clock(600)
        server.restart(keep_data=False)
        assert ahead(server) == pytest.approx(600, abs=0.5)
        server.pause()
        server.step_clock(0)
        server.resume()
        until(lambda: ahead(server) == pytest.approx(0, abs=0.5))


def test_real_clock_does_not_step() -> None:
    """Without fake_clock there is nothing to set."""
    with RedisServer() as server, pytest.raises(ValueError, match="fake_clock=True"):
        server.step_clock(1)


def test_tls() -> None:
    """A client that trusts its authority is answered; one that trusts another refuses."""
    need(openssl_program)
    with RedisServer(tls=True) as server:
        assert server.url.startswith("rediss://")
        assert server.command("PING") == "PONG"
        other = server.directory / "other"
        other.mkdir()
        stranger = make_certificate(other).authority
        with pytest.raises(ssl.SSLCertVerificationError):
            run_commands(server.port, ("PING",), ca_file=stranger)
        server.restart(keep_data=False)
        assert server.command("PING") == "PONG"


def test_replica_follows() -> None:
    """What is written to the master is on the replica, once WAIT says so."""
    with RedisServer() as master, RedisServer(replica_of=master) as replica:
        until(lambda: "connected_slaves:1" in master.command("INFO", "replication"))
        master.command("SET", "x", "1")
        until(lambda: replica.command("GET", "x") == "1")


def test_sentinel_names_the_master() -> None:
    """It names the master, and a moment after its death the replica that took its place."""
    with (
        RedisServer() as master,
        RedisServer(replica_of=master) as replica,
        RedisSentinel(master, name="boss") as sentinel,
    ):
        assert sentinel.master_port() == master.port
        until(lambda: sentinel.command("SENTINEL", "REPLICAS", "boss"))
        until(lambda: "master_link_status:up" in replica.command("INFO", "replication"))
        master.kill()
        until(lambda: sentinel.master_port() == replica.port)
        until(lambda: replica.command("ROLE")[0] == "master")
