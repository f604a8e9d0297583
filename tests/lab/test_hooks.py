"""The hooks that faults need do what they say, to real servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.harness import SqliteHarness
from holdfast.testing.redis_harness import RedisHarness, RedlockHarness
from holdfast.testing.redis_part import RedisPart
from holdfast.testing.servers import need
from holdfast.testing.servers.programs import faketime_library
from tests.unit.waiting import until


@contextmanager
def redis(*hooks: str) -> Iterator[RedisPart]:
    """Run a server that is ready for these hooks."""
    harness = RedisHarness()
    if "step_clock" in hooks:
        need(faketime_library)
    harness.equip(*hooks)
    harness.start()
    try:
        yield harness.parts()[0]
    finally:
        harness.stop()


def test_roll_back_brings_back_the_copy() -> None:
    """What was written after the copy is gone, what was there before is back."""
    with redis("keep_copy", "roll_back") as part:
        part.server.command("SET", "before", "1")
        part.keep_copy()
        part.server.command("SET", "after", "1")
        part.roll_back()
        assert part.server.command("GET", "before") == "1"
        assert part.server.command("GET", "after") is None


def test_eviction_throws_everything_out_and_ends() -> None:
    """All keys are gone, and the server takes new ones."""
    with redis() as part:
        for number in range(20):
            part.server.command("SET", f"key-{number}", "x")
        part.evict()
        assert part.server.command("EXISTS", *(f"key-{number}" for number in range(20))) == 0
        assert part.server.command("SET", "new", "x") == "OK"


def test_flush_and_kick() -> None:
    """An administrator deletes all keys, closes all connections, forgets all scripts."""
    with redis() as part:
        with holdfast.connect(f"redis://127.0.0.1:{part.proxy.port}/0", ttl=5) as client:
            lease = client.lock("x").acquire()
            assert lease is not None
            part.kick()
            with suppress(holdfast.OutcomeUnknown):
                lease.extend()  # this one may find its connection closed
            lease.extend()  # by a new connection, with a script that was forgotten
            part.flush()
            assert part.server.command("DBSIZE") == 0
            assert lease.release() is False


def test_fail_over_loses_what_the_replica_missed() -> None:
    """The replica takes over with what it heard; then it has a replica itself, and again."""
    with redis("fail_over") as part:
        for number in range(2):
            part.server.command("SET", f"heard-{number}", "1")
            replica = part.servers[1]
            until(partial(replica.command, "GET", f"heard-{number}"))
            part.part_replica()
            part.server.command("SET", f"missed-{number}", "1")
            before = part.server
            part.fail_over()
            assert part.server is not before
            assert part.server.command("GET", f"heard-{number}") == "1"
            assert part.server.command("GET", f"missed-{number}") is None
            with holdfast.connect(f"redis://127.0.0.1:{part.proxy.port}/0") as client:
                client.ping()


def test_clock_of_one_server() -> None:
    """It is set and set right."""
    with redis("step_clock") as part:
        part.step_clock(3600)
        part.step_clock(0)


def test_two_ways_lead_to_the_same_servers() -> None:
    """One can be cut while the other works; without that, there is one."""
    harness = RedlockHarness(nodes=3)
    harness.equip("links")
    harness.start()
    try:
        near, far = (holdfast.connect(url, ttl=1) for url in harness.lab_urls(1.0))
        with near, far:
            for link in harness.links()[1]:
                link.cut()
            near.ping()
            with pytest.raises(holdfast.EngineUnavailable):
                far.ping()
            harness.links()[1][0].heal()
            harness.links()[1][1].heal()
            far.ping()
        assert len(harness.links()) == 2
        assert harness.recovery > 0
    finally:
        harness.stop()
    assert len(RedisHarness().links()) == 1


def test_a_lock_file_that_is_rolled_back(tmp_path: Path) -> None:
    """The backup replaces what was done since, under the hands of a client that goes on."""
    harness = SqliteHarness()
    harness.start()
    with holdfast.connect(harness.url) as client:
        first = client.lock("x").acquire()
        assert first is not None
        harness.keep_copy()
        first.release()
        harness.roll_back()
        assert client.inspect("x").holders[0].token == first.token
        harness.flush()
        assert not client.locks()
    harness.stop()
    assert not Path(harness.url.removeprefix("sqlite://")).parent.exists()
