"""(Generated from _async/test_redlock_nodes.py by tools/unasync.py: do not edit.) Nodes of a Redlock that are down, slow or stopped: the others decide, and nobody waits long."""

from __future__ import annotations

import math
import time

import pytest

import holdfast
from holdfast.model import Grant, Mode, Outcome, Queued
from holdfast.testing.redis_harness import RedlockHarness
from holdfast.testing.running import Spawned, elapsed
from tests._sync.redlock_suite import ALL, LONG, PATIENT, RedlockSuite

PAIRS = 20


class TestNodesDown(RedlockSuite):
    """A minority, then a majority of five nodes cannot be reached."""

    harness = RedlockHarness()

    # --- A minority. ---

    @pytest.mark.parametrize("way", ["killed", "cut"])
    def test_two_down_at_the_start(self, way: str) -> None:
        """Two of five may be down when a namespace is first used; the same client uses them again
        when they return, at once."""
        for number in (1, 3):
            if way == "killed":
                self.servers[number].kill()
            else:
                self.cut(number)
        client = self.patient()
        started = time.monotonic()
        lease = self.take(client.lock("x"))
        assert elapsed(started) < 20 * PATIENT
        assert self.seats_of(0, 2, 4) == {0, 2, 4}
        assert lease.release() is True
        if way == "killed":
            for number in (1, 3):
                self.servers[number].start()
        self.heal()

        def all_vote() -> bool:
            lease = self.take(client.lock("x"))
            seats = self.seats("x", lease.owner)
            assert lease.release() is True
            return seats == [*ALL]

        self.until(all_vote)
        assert all(int(self.roster(number)["until"]) <= self.now(number) for number in ALL)

    def seats_of(self, *numbers: int) -> set[int]:
        """Return on which of these nodes somebody holds "x"."""
        return {number for number in numbers if self.tokens_at(number, "x")}

    def test_a_held_lease_comes_back_to_nodes_that_return(self) -> None:
        """A lease that was taken while two were away is on all five after its next renewal: then
        two others may fail."""
        client = self.patient(ttl=2)
        self.cycle(client)
        self.settle(client)
        self.cut(3, 4)
        lease = self.take(client.lock("x"))
        assert self.seats("x") == [0, 1, 2]
        self.heal()
        self.until_so(lambda: self.seats("x", lease.owner) == [*ALL])
        assert {self.tokens_at(number, "x")[lease.owner] for number in ALL} == {lease.token}
        self.cut(0, 1)
        assert self.direct().lock("x").acquire(timeout=2.5) is None
        assert lease.held
        self.heal()
        assert lease.release() is True

    @pytest.mark.parametrize("kind", ["readers", "permits", "branches"])
    def test_leases_side_by_side_come_back_together(self, kind: str) -> None:
        """Several that hold the same name at once are all seated again where a node returns."""
        client = self.patient(ttl=2)
        self.cycle(client, "y")
        self.settle(client)

        def lock(number: int) -> holdfast.Lock:
            if kind == "readers":
                return client.rwlock("x").read()
            if kind == "permits":
                return client.semaphore("x", 3)
            return client.tree(f"x/{number}").write()

        self.cut(4)
        leases = [self.take(lock(number)) for number in range(3)]
        assert self.tokens_at(4, "x") == {}
        self.heal()
        owners = {lease.owner for lease in leases}
        self.until_so(lambda: self.tokens_at(4, "x").keys() == owners)
        for lease in leases:
            assert lease.release() is True
        self.until_free("x")

    @pytest.mark.parametrize("others", ["vote in vain", "hold beside it"])
    def test_a_lease_comes_back_whoever_came_since(self, others: str) -> None:
        """A node that returns has seen higher tokens than that of a lease which it missed: of those
        who voted in vain, and of those who hold beside it. The lease is seated all the same, and
        tokens go on above them."""
        client, direct = self.patient(), self.direct()
        for one in (client, direct):
            self.cycle(one)
            self.settle(one)
        beside = others == "hold beside it"
        mode = Mode.SHARED if beside else Mode.EXCLUSIVE
        missed, later = (self.claim("x", mode=mode, ttl=LONG) for _ in range(2))
        self.cut(4)
        grant = client.engine.claim(missed, 5.0)
        assert isinstance(grant, Grant)
        assert isinstance(direct.engine.claim(later, 5.0), Grant) == beside
        self.settle(direct)
        floor = self.floor(4, "x")
        assert floor > grant.token
        self.heal()

        def is_back() -> bool:
            (renewal,) = client.engine.renew([missed], 5.0)
            assert renewal.outcome is Outcome.RENEWED
            return self.tokens_at(4, "x").get(missed.owner) == grant.token

        self.until(is_back)
        assert self.floor(4, "x") == floor
        self.unseat("x", 0, 1)
        alone = self.claim("x", ttl=LONG)
        assert isinstance(direct.engine.claim(alone, 5.0), Queued)
        for claim in (missed, later, alone):
            direct.engine.release(claim, 5.0)
        self.until_free("x")
        assert self.cycle(direct) > floor

    def test_every_verb_works_without_two(self) -> None:
        """Whatever is asked, three of five answer it."""
        client = self.patient(ttl=3, node_timeout=0.1)
        self.warm_up(client)
        self.cut(0, 3)
        lease = self.take(client.rwlock("x").write())
        waiter = self.queue(client, client.rwlock("x").read())
        shot = client.inspect("x")
        assert [entry.token for entry in shot.holders] == [lease.token]
        assert [entry.mode for entry in shot.waiters] == [Mode.SHARED]
        assert [one.name for one in client.locks()] == ["x"]
        lease.extend()
        client.ping()
        assert client.force_release("x", lease.token) == 1
        second = waiter.result()
        assert second.token > lease.token
        self.until_lost(lease)
        assert second.release() is True

    # --- A majority. ---

    def test_three_down(self) -> None:
        """Without a majority there is no lock: the error comes in time, names what is wrong, and
        afterwards nothing is stuck."""
        client = self.patient(connect_timeout=0.3, node_timeout=0.15)
        self.warm_up(client)
        self.cut(0, 2, 4)
        lock = client.lock("x", ttl=LONG)
        for call, most in (
            (lock.try_acquire, 0.3),
            (lambda: lock.acquire(timeout=0.2), 0.2),
            (lock.acquire, 0.3),
        ):
            started = time.monotonic()
            error = self.raises(holdfast.EngineUnavailable, call)
            assert elapsed(started) < most + 5.0
            assert "Only 2 of 5 nodes answered, 3 are needed" in str(error)
        for look in (lambda: client.inspect("x"), client.locks, client.ping):
            self.raises(holdfast.EngineUnavailable, look)
        self.heal()
        self.until_free("x")
        assert self.cycle(self.patient()) > 0
        self.cycle(client)

    def test_a_lease_survives_a_majority_that_is_down_for_a_while(self) -> None:
        """A lease is suspended while it cannot be confirmed, and goes on under its token."""
        client = self.patient(ttl=4, node_timeout=0.2)
        heard = self.listen(client)
        lease = self.take(client.lock("x"))
        self.cut(1, 2, 3)
        heard.until(holdfast.events.Suspended)
        assert lease.held
        self.heal()
        heard.until(holdfast.events.Resumed)
        assert lease.held
        assert lease.release() is True

    def test_a_lease_is_lost_before_others_get_it(self) -> None:
        """Cut off from a majority, a holder stops in time: it never overlaps with the next one."""
        lease = self.take(self.patient(ttl=2).lock("x"))
        other = self.direct(ttl=2)
        self.cut(0, 1, 2)
        second = self.take(other.lock("x"))
        assert not lease.held
        assert second.token > lease.token
        assert second.release() is True


class TestStoppedNodes(RedlockSuite):
    """Nodes that are stopped (SIGSTOP): connections are there, answers are not."""

    harness = RedlockHarness()

    @pytest.mark.parametrize("stopped", [(0,), (1, 3)])
    def test_they_cost_no_time_out(self, stopped: tuple[int, ...]) -> None:
        """Not even the first pair waits for those that are stopped, however many there are, nor do
        later ones; when they go on, they are used again."""
        client = self.patient()
        for _ in range(3):
            self.cycle(client)
        for number in stopped:
            self.servers[number].pause()
        started = time.monotonic()
        self.cycle(client)
        assert elapsed(started) < PATIENT
        started = time.monotonic()
        for _ in range(PAIRS):
            self.cycle(client)
        assert (
            elapsed(started) < PAIRS * PATIENT
        )  # two rounds each; of each 0.5, 1, 2… s one may try again
        for number in stopped:
            self.servers[number].resume()

        def all_answer() -> bool:
            self.cycle(client)
            return all(node.error is None for node in client.engine.nodes)  # type: ignore[attr-defined]

        self.until(all_answer)
        self.until_free("x")

    def test_looking_waits_for_them_once(self) -> None:
        """inspect and locks do not wait for a stopped node again and again."""
        client = self.connect()  # of 50 ms, for a look twenty times that
        lease = self.take(client.lock("x", ttl=LONG))
        self.servers[2].pause()
        client.inspect("x")
        client.locks()
        started = time.monotonic()
        for _ in range(5):
            assert len((client.inspect("x")).holders) == 1
            assert len(client.locks()) == 1
        assert elapsed(started) < 9.0
        assert lease.release() is True

    def test_one_that_is_impatient_does_not_spoil_it_for_others(self) -> None:
        """A node that is too slow for a short time-out is asked all the same by whoever waits
        longer."""
        client = self.connect(node_timeout=PATIENT)
        self.cycle(client)
        self.settle(client)
        self.proxies[2].delay(0.2)
        lease = client.lock("y", ttl=1.0).try_acquire()  # 50 ms for each node
        assert lease is not None
        self.settle(client)
        assert client.engine.nodes[2].errors > 0  # type: ignore[attr-defined]
        patient = self.take(client.lock("x", ttl=LONG))
        self.settle(client)
        assert self.seats("x", patient.owner) == [*ALL]
        lease.release()
        assert patient.release() is True

    def test_waiters_hear_of_it_without_them(self) -> None:
        """A hand-over works by the three that are left."""
        client, other = self.patient(), self.patient()
        lease = self.take(client.lock("x"))
        waiter = self.queue(other, other.lock("x"))
        self.servers[0].pause()
        self.servers[4].pause()
        started = time.monotonic()
        assert lease.release() is True
        second = waiter.result()
        assert elapsed(started) < 10.0
        assert second.token > lease.token
        assert second.release() is True


class TestWhatIsVisible(RedlockSuite):
    """Errors and latency of each node."""

    harness = RedlockHarness()

    def test_latency_is_that_of_the_node(self) -> None:
        """A slow node is told from the others, which answered long before."""
        client = self.patient()
        for _ in range(3):
            self.cycle(client)
        nodes = client.engine.nodes  # type: ignore[attr-defined]
        assert all(0 < node.latency < math.inf for node in nodes)
        for slow in (0, 3):
            self.proxies[slow].delay(0.2)

            def told_apart(slow: int = slow) -> bool:
                # A pause between two looks at sockets counts for the node that is looked at next.
                self.cycle(client)
                self.settle(client)
                assert nodes[slow].latency >= 0.2
                return bool(sum(node.latency < 0.2 for node in nodes) == 4)

            self.until(told_apart)
            self.proxies[slow].heal()
            self.cycle(client)
            self.settle(client)
            assert nodes[slow].latency < 0.2

    def test_errors_are_counted_and_told(self) -> None:
        """A node without an answer is an event that names it; it is counted, and forgiven when it
        is back."""
        client = self.patient(node_timeout=0.2)
        heard = self.listen(client)
        self.cycle(client)
        node = client.engine.nodes[2]  # type: ignore[attr-defined]
        self.settle(client)
        assert (node.errors, node.error) == (0, None)
        self.proxies[2].cut()
        self.cycle(client)
        self.settle(client)
        failed, again = heard.until(holdfast.events.NodeFailed, 2)  # claim and release
        assert again.node == failed.node
        assert failed.node == node.location == f"redis://127.0.0.1:{self.proxies[2].port}/0"
        assert failed.name == ""
        assert "no answer" in failed.error
        assert node.errors == 2
        assert str(node.error) == again.error
        self.heal()

        def forgiven() -> bool:
            self.cycle(client)
            return node.error is None

        self.until(forgiven)
        assert node.errors >= 2

    def test_a_silent_node_is_heard_anew(self) -> None:
        """Messages of a node that was silent may be lost for ever on the old connection: a new one
        is made when it is back."""
        client = self.patient(node_timeout=0.2)
        self.cycle(client)
        node = client.engine.nodes[1]  # type: ignore[attr-defined]
        assert node.listening
        self.proxies[1].cut()
        self.cycle(client)
        self.settle(client)
        self.until_so(lambda: not node.listening)
        self.heal()

        def heard() -> bool:
            self.cycle(client)
            return bool(node.listening)

        self.until(heard)

    def test_a_server_that_comes_back_is_greeted_again(self) -> None:
        """After a restart scripts, messages and the run id are learnt anew, while others hold."""
        client = self.patient(ttl=3)
        self.warm_up(client)
        node = client.engine.nodes[0]  # type: ignore[attr-defined]
        before = node.greeting.run_id
        lease = self.take(client.lock("held"))
        tasks = [Spawned(self.take, client.lock(f"x{number}")) for number in range(4)]
        self.servers[0].restart(keep_data=False)
        for task in tasks:
            assert (task.result()).release() is True

        def known() -> bool:
            self.cycle(client)
            return bool(node.greeting.run_id != before and node.listening)

        self.until(known)
        assert lease.held
        assert lease.release() is True
