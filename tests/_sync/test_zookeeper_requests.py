"""(Generated from _async/test_zookeeper_requests.py by tools/unasync.py: do not edit.) What goes over the wire to ZooKeeper: as little as can be, and nobody is woken in vain."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import holdfast
from holdfast.model import Grant, Queued
from holdfast.testing.running import Spawned
from holdfast.testing.zookeeper_harness import SharedZooKeeperHarness
from tests._sync.zookeeper_suite import ZooKeeperSuite

PAIRS = 20
WAITERS = 100
CROWD = 1000
TTL = 30.0
LIMIT = 60.0  # seconds for what takes milliseconds on a machine that has nothing else to do
UPKEEP = ("Exists", "Transaction")  # signs of life of a session, and of those who wait in it


class Tally:
    """What some sessions send and hear from now on."""

    def __init__(self, *sessions: Any) -> None:
        self.sent: Counter[str] = Counter()
        self.woken = 0
        for session in sessions:
            self._wrap(session)

    def _wrap(self, session: Any) -> None:
        send_all, passed = session.send_all, session.passed

        def count(requests: Any) -> None:
            self.sent.update(type(request).__name__ for request, _ in requests)
            send_all(requests)

        def note(path: str) -> None:
            self.woken += 1
            passed(path)

        session.send_all, session.passed = count, note

    @property
    def asked(self) -> dict[str, int]:
        """What was sent for locks."""
        return {kind: count for kind, count in self.sent.items() if kind not in UPKEEP}


def count_threads() -> int:
    """Return how many threads there are, besides those that renew leases."""
    return sum(thread.name != "holdfast-worker" for thread in threading.enumerate())


class TestRequests(ZooKeeperSuite):
    """One server, and sessions whose requests are counted."""

    harness = SharedZooKeeperHarness()

    def test_a_pair_is_three_requests(self) -> None:
        """Claim and list go out together, then one delete; the server sees no more than that."""
        self.cycle(self.client)
        tally = Tally(self.session(self.client, TTL))
        before = self.received()
        for _ in range(PAIRS):
            self.cycle(self.client)
        assert tally.asked == {"Create2": PAIRS, "GetChildren": PAIRS, "Delete": PAIRS}
        assert self.received() - before <= 3 * PAIRS + 10  # looking, and signs of life

    def test_a_first_use_is_one_more(self) -> None:
        """A name that the client has not used yet costs one request more, no round trip."""
        self.cycle(self.client, "a")
        tally = Tally(self.session(self.client, TTL))
        self.cycle(self.client, "b")
        assert tally.asked == {"CreateContainer": 1, "Create2": 1, "GetChildren": 1, "Delete": 1}

    def test_a_try_in_vain(self) -> None:
        """Who finds the lock busy and does not wait takes its node away; it reads the holder's
        label once."""
        lease = self.take(self.connect().lock("x"))
        self.cycle(self.client, "y")
        tally = Tally(self.session(self.client, TTL))
        for _ in range(3):
            assert self.client.lock("x").try_acquire() is None
        assert tally.asked.pop("CreateContainer") == 1
        assert tally.asked.pop("GetData", 0) <= 1
        assert tally.sent["Create2"] == tally.sent["GetChildren"] == tally.sent["Delete"] == 3
        assert lease.release() is True

    def test_one_write_renews_all(self) -> None:
        """Leases that are due together are renewed by one write, however many they are."""
        leases = [self.take(self.client.lock(f"x{n}", ttl=6)) for n in range(50)]
        heard = self.listen(self.client)
        tally = Tally(self.session(self.client, 6))
        heard.until(holdfast.events.Renewed, len(leases))
        assert tally.sent["Transaction"] <= 20  # one for each step of the grid they were taken in
        for lease in leases:
            assert lease.release() is True

    def test_100_waiters(self) -> None:
        """A hand-over wakes one waiter, which sends one request, whatever the queue's length; all
        get in as they came."""
        clients = [self.connect() for _ in range(4)]
        lease = self.take(self.client.lock("x"))
        tokens: list[int] = []

        def once(client: holdfast.Client) -> None:
            mine = self.take(client.lock("x"), 6 * self.harness.patience)
            tokens.append(mine.token)
            assert mine.release() is True

        for client in clients:
            client.ping()
        tally = Tally(*(self.session(client, TTL) for client in clients))
        waiters = [Spawned(once, clients[n % 4]) for n in range(WAITERS)]
        self.until_so(lambda: tally.sent["GetData"] >= WAITERS)

        def all_wait() -> bool:
            return len((self.client.inspect("x")).waiters) == WAITERS

        self.until(all_wait)
        tally.sent.clear()
        assert tally.woken == 0
        assert lease.release() is True
        for waiter in waiters:
            waiter.result(6 * self.harness.patience)
        assert tokens == sorted(set(tokens))
        assert tally.woken == WAITERS
        assert tally.asked.pop("Delete") == WAITERS
        assert tally.sent["GetChildren"] <= WAITERS
        assert set(tally.asked) <= {"GetChildren", "Delete"}

    def test_semaphore_wakes_nobody_in_vain(self) -> None:
        """Of a semaphore, too, one permit that comes back wakes one waiter."""
        holder, other = self.connect(), self.connect()
        permits = [self.take(holder.semaphore("x", 3)) for _ in range(3)]
        other.ping()
        tally = Tally(self.session(other, TTL))
        waiters = []
        for _ in range(6):
            waiters.append(self.queue(other, other.semaphore("x", 3)))
        for number, permit in enumerate(permits):
            assert permit.release() is True
            waiters[number].result()
        assert tally.woken <= 6
        for waiter in waiters[:3]:
            assert (waiter.result()).release() is True
        for waiter in waiters[3:]:
            assert (waiter.result()).release() is True

    def test_1000_waiters_need_no_threads(self) -> None:
        """A thousand claims wait in one client with the one thread that its session has."""
        lease = self.take(self.client.lock("x"))
        client = self.connect()
        engine = client.engine
        client.ping()
        threads = count_threads()
        claims = [self.claim("x", ttl=TTL) for _ in range(CROWD)]
        for claim in claims:
            assert isinstance(engine.claim(claim, LIMIT), Queued)
        assert count_threads() == threads
        assert len(self.nodes()) == 1 + CROWD
        assert lease.release() is True
        for claim in claims[:20]:
            assert engine.wait(claim, Queued(0, TTL), LIMIT) is None
            answer = engine.claim(claim, LIMIT)
            assert isinstance(answer, Grant)
            assert engine.release(claim, LIMIT) is True
        assert count_threads() == threads
        engine.close()  # without a goodbye they would all stay for a while
