"""(Generated from _async/test_redis_server.py by tools/unasync.py: do not edit.) What may be done to a Redis server while locks are held on it, and what becomes of them."""

from __future__ import annotations

import time

import pytest

import holdfast
from holdfast._concurrency import sleep
from holdfast.model import Mode, Reason
from holdfast.testing.redis_harness import RedisHarness
from holdfast.testing.running import elapsed
from tests._sync.redis_suite import RedisSuite

LONG = 30.0  # a TTL that nobody waits for
QUICK = 9.0  # what is told, not timed, takes less
NAMES = 2000
DAY = 86400


class TestServer(RedisSuite):
    """A server whose scripts, connections or data are taken away."""

    harness = RedisHarness()

    def test_script_flush(self) -> None:
        """A server that forgot the scripts is told them again, in every verb."""

        def forget() -> None:
            self.server.command("SCRIPT", "FLUSH")

        forget()
        lease = self.take(self.client.lock("x"))
        forget()
        lease.extend()
        forget()
        assert (self.client.inspect("x")).holders[0].token == lease.token
        forget()
        assert [shot.name for shot in self.client.locks()] == ["x"]
        forget()
        waiter = self.queue(self.client, self.client.lock("x"))
        forget()
        assert lease.release() is True
        second = waiter.result()
        forget()
        assert self.client.force_release("x", second.token) == 1
        self.until_lost(second)
        forget()
        self.cycle(self.client)

    @pytest.mark.parametrize("kind", ["normal", "pubsub"])
    def test_killed_connections(self, kind: str) -> None:
        """Holder and waiters survive the end of their connections: the lock is handed over, and
        nobody waits for a TTL."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        others = [self.connect() for _ in range(3)]
        waiters = [self.queue(other, other.lock("x", ttl=LONG)) for other in others]
        started = time.monotonic()
        for _ in range(2):
            self.server.command("CLIENT", "KILL", "TYPE", kind)
        assert lease.held
        tokens = [lease.token]
        assert lease.release() is not False  # None: its own connection was killed under it
        while waiters:
            self.until_so(lambda: any(waiter.done for waiter in waiters))
            (first,) = [waiter for waiter in waiters if waiter.done]
            waiters.remove(first)
            tokens.append((first.result()).token)
            assert (first.result()).release() is not False
        assert elapsed(started) < QUICK
        assert tokens == sorted(set(tokens))
        self.until_free("x")

    def test_force_is_heard_again_after_a_renewal(self) -> None:
        """A holder whose ear was cut off listens again from its next renewal on."""
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=1.5))
        self.server.command("CLIENT", "KILL", "TYPE", "pubsub")
        heard.until(holdfast.events.Renewed)
        assert len(self.links("pubsub")) == 1
        assert self.connect().force_release("x") == 1
        assert lease.lost.wait(0.4), "before the next renewal"
        assert lease.lost_reason is Reason.FORCED

    def test_force_while_nobody_hears(self) -> None:
        """A lock that is broken while its holder hears nothing is lost at the next renewal."""
        lease = self.take(self.client.lock("x", ttl=1))
        direct = self.reach(self.server.url)
        direct.ping()
        self.proxy.drop_pushes()
        assert direct.force_release("x") == 1
        self.until_lost(lease)
        assert lease.lost_reason is Reason.EXPIRED, "the renewal found nothing"

    def test_flushall(self) -> None:
        """All data gone: the holder is told at its next renewal, those who waited get in, tokens
        go on rising, and nothing is left behind."""
        lease = self.take(self.client.lock("x", ttl=0.9))
        others = [self.connect() for _ in range(3)]
        waiters = [self.queue(other, other.lock("x", ttl=0.9)) for other in others]
        self.server.command("FLUSHALL")
        self.until_lost(lease)
        assert lease.lost_reason in (Reason.EXPIRED, Reason.STOLEN)
        tokens = [lease.token]
        for _ in range(len(waiters)):
            self.until_so(lambda: any(waiter.done for waiter in waiters))
            (first,) = [waiter for waiter in waiters if waiter.done]
            waiters.remove(first)
            tokens.append((first.result()).token)
            assert (first.result()).release() is True
        assert tokens == sorted(set(tokens))
        self.until_free("x")

    def test_flushall_of_idle_names(self) -> None:
        """A name whose floor is forgotten gives higher tokens all the same."""
        first = self.cycle(self.client)
        self.server.command("FLUSHALL")
        assert self.cycle(self.client) > first

    def test_no_memory_left(self) -> None:
        """Claims fail cleanly; what is held is renewed, given back and handed over as ever."""
        self.warm_up(self.client)
        heard = self.listen(self.client)
        lease = self.take(self.client.lock("x", ttl=1))
        other = self.connect()
        waiter = self.queue(other, other.lock("x", ttl=1))
        single = self.take(self.client.lock("single", ttl=LONG))
        permits = [self.take(self.client.semaphore("s", 2, ttl=LONG)) for _ in range(2)]
        self.server.command("CONFIG", "SET", "maxmemory", "100kb")
        try:
            error = self.raises(
                holdfast.EngineUnavailable, self.client.lock("new").try_acquire
            )
            assert "no memory left" in str(error)
            heard.events.clear()
            heard.until(holdfast.events.Renewed)
            assert lease.release() is True
            second = waiter.result()
            assert second.token > lease.token
            second.extend(LONG)
            assert second.release() is True
            assert single.release() is True
            for permit in permits:
                assert permit.release() is True
        finally:
            self.server.command("CONFIG", "SET", "maxmemory", "0")
        for name in ("x", "single", "s", "new"):
            self.until_free(name)
        self.cycle(self.client, "new")

    def test_waiter_that_ends_a_dead_lease_is_let_in_once(self) -> None:
        """Whose own question finds the dead gone gets one seat, not two: the rest stays free."""
        for _ in range(2):
            self.die_holding(self.claim("s", "semaphore-2", ttl=0.3))
        one = self.take(self.client.semaphore("s", 2, ttl=LONG))
        two = self.take(self.client.semaphore("s", 2, ttl=LONG), timeout=1)
        assert len(self.holders("s")) == 2
        assert self.client.semaphore("s", 2).try_acquire() is None
        assert one.release() is True
        assert two.release() is True
        self.die_holding(self.claim("x", ttl=0.3))
        reader = self.take(self.client.rwlock("x", ttl=LONG).read())
        assert reader.token == self.floor("x")
        writer = self.queue(self.client, self.client.rwlock("x", ttl=LONG).write(), 2)
        assert reader.release() is True
        assert (writer.result()).release() is True

    def test_force_that_ends_a_dead_lease(self) -> None:
        """Breaking a lock whose holder is dead already breaks the next one, which that let in."""
        self.client.ping()
        dead = self.claim("x", ttl=0.3, mode=Mode.SHARED)
        writer, reader = self.claim("x", ttl=LONG), self.claim("x", ttl=LONG, mode=Mode.SHARED)
        for claim in (dead, writer, reader):
            self.client.engine.claim(claim, QUICK)
        sleep(0.35)  # over, and nobody has looked
        assert self.client.force_release("x") == 1
        assert self.holders("x") == [reader.owner]
        assert self.client.engine.release(writer, QUICK) is False
        assert self.client.engine.release(reader, QUICK) is True
        self.until_free("x")

    def test_names_are_forgotten(self) -> None:
        """2,000 names that were used leave one small key each, for a day or two, and no others."""
        client = self.connect(ttl=LONG)
        first = self.take(client.lock("name"))
        waiter = self.queue(client, client.lock("name"))
        assert first.release() is True
        assert (waiter.result()).release() is True
        for number in range(NAMES):
            lease = client.lock(f"name-{number}").try_acquire()
            assert lease is not None
            lease.release()
        left = self.keys()
        assert len(left) == NAMES + 1
        assert not [key for key in left if not key.endswith("}")], "no queue and no tombstone"
        script = """
            local least, most, bytes = math.huge, 0, 0
            for _, key in ipairs(KEYS) do
              local ttl = redis.call('TTL', key)
              least, most = math.min(least, ttl), math.max(most, ttl)
              bytes = math.max(bytes, redis.call('MEMORY', 'USAGE', key))
            end
            return {least, most, bytes}
        """
        least, most, size = self.server.command("EVAL", script, len(left), *left)
        assert DAY - 60 <= least <= most <= 2 * DAY + 1
        assert size <= 400
