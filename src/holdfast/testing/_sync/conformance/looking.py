"""(Generated from _async/conformance/looking.py by tools/unasync.py: do not edit.) Looking and repairing: inspect, locks and force_release show and change what is really there."""

from __future__ import annotations

import time
from typing import Any

import pytest

import holdfast

from ....model import Mode
from .base import Base


class LookingTests(Base):
    """What an operator does."""

    def test_inspect_shows_holder_and_queue(self) -> None:
        """Token, owner, label, mode and times of the holder; who waits, in order, without token."""
        one, two = self.connect(label="first in line"), self.connect()
        lease = self.take(self.client.lock("x", ttl=20, label="the holder"))
        waiters = [
            self.queue(one, one.lock("x")),
            self.queue(two, two.rwlock("x", label="second").read()),
        ]
        snapshot = self.client.inspect("x")
        assert (snapshot.name, snapshot.kind, snapshot.limit) == ("x", "lock", 0)
        (holder,) = snapshot.holders
        assert holder.name == "x"
        assert holder.token == lease.token
        assert holder.owner == lease.owner
        assert holder.label == lease.label == "the holder"
        assert holder.mode is Mode.EXCLUSIVE
        assert 0 < holder.expires_in <= 20
        assert abs(holder.since - time.time()) < 3600, "Unix time, by the engine's clock"
        assert [(entry.label, entry.mode) for entry in snapshot.waiters] == [
            ("first in line", Mode.EXCLUSIVE),
            ("second", Mode.SHARED),
        ]
        assert all(entry.token is None for entry in snapshot.waiters)
        lease.release()
        for waiter in waiters:
            (waiter.result()).release()
        assert (self.client.inspect("x")).kind is None

    def test_inspect_shows_kind_and_limit(self) -> None:
        """A semaphore shows its limit and all its holders, a tree its paths."""
        permits = [self.take(self.client.semaphore("s", 3)) for _ in range(2)]
        node = self.take(self.client.tree("t/a/b").read())
        semaphore = self.client.inspect("s")
        assert (semaphore.kind, semaphore.limit) == ("semaphore", 3)
        assert {entry.token for entry in semaphore.holders} == {one.token for one in permits}
        tree = self.client.inspect("t")
        assert tree.kind == "tree"
        assert [(entry.path, entry.mode) for entry in tree.holders] == [(("a", "b"), Mode.SHARED)]
        for lease in (*permits, node):
            lease.release()

    def test_inspect_does_not_show_the_dead(self) -> None:
        """Once its TTL is over, a holder that nobody renewed is not shown."""
        self.die_holding(self.claim("x"))
        self.until_idle("x")
        assert list(self.client.locks()) == []

    def test_label_is_the_client_s_unless_the_lock_has_one(self) -> None:
        """Who holds is said by the lock's label, else the client's, else host and process."""
        named = self.connect(label="billing é")
        with named.lock("a") as one, named.lock("b", label="own") as two:
            assert (one.label, two.label) == ("billing é", "own")
            assert (self.client.inspect("a")).holders[0].label == "billing é"
            assert (self.client.inspect("b")).holders[0].label == "own"
        with self.client.lock("c") as three:
            assert three.label

    def test_locks_lists_by_prefix(self) -> None:
        """locks() shows all names in use, in order; a prefix narrows it down by the letter."""
        names = ["orders/1", "orders/10", "orders/2", "ordersX", "other"]
        leases = [self.take(self.client.lock(name)) for name in names]

        def listed(prefix: str) -> list[str]:
            return sorted(shot.name for shot in self.client.locks(prefix))

        assert listed("") == names
        assert listed("orders/") == names[:3]
        assert listed("orders/1") == names[:2]
        assert listed("orders") == names[:4]
        assert listed("none") == []
        for lease in leases:
            lease.release()
        assert listed("") == []

    def test_locks_shows_what_inspect_shows(self) -> None:
        """Each snapshot of the list is the one that inspect gives."""
        lease = self.take(self.client.semaphore("s", 3))
        (shot,) = self.client.locks()
        alone = self.client.inspect("s")
        assert (shot.name, shot.kind, shot.limit) == (alone.name, alone.kind, alone.limit)
        assert [one.owner for one in shot.holders] == [one.owner for one in alone.holders]
        lease.release()

    def test_force_release_by_token_spares_the_others(self) -> None:
        """Only the holder with that token goes; a token that is gone breaks nothing."""
        other = self.connect()
        one, two = [self.take(other.semaphore("x", 3, ttl=self.ttl)) for _ in range(2)]
        assert self.client.force_release("x", one.token) == 1
        self.until_lost(one)
        assert self.client.force_release("x", one.token) == 0
        assert two.held
        assert [entry.token for entry in (self.client.inspect("x")).holders] == [two.token]
        assert two.release() is True

    def test_force_release_spares_a_newer_holder(self) -> None:
        """The token of a hold that is over cannot break the hold of who came after."""
        old = self.take(self.client.lock("x"))
        old.release()
        new = self.take(self.client.lock("x"))
        assert self.client.force_release("x", old.token) == 0
        assert new.held
        assert new.release() is True

    def test_force_release_of_an_idle_name_is_nothing(self) -> None:
        """Breaking what nobody holds breaks nothing, and says so."""
        assert self.client.force_release("x") == 0
        assert self.client.force_release("x", 5) == 0

    @pytest.mark.parametrize("token", ["5", 5.0, True])
    def test_force_release_needs_a_whole_number(self, token: Any) -> None:
        """What is no token is refused before anything is broken."""
        lease = self.take(self.client.lock("x"))
        with pytest.raises(TypeError, match="token"):
            self.client.force_release("x", token)
        assert lease.release() is True

    def test_force_release_is_an_event(self) -> None:
        """Who breaks a lock tells its listeners what was broken."""
        lease = self.take(self.connect().lock("x", ttl=self.ttl))
        heard = self.listen(self.client)
        self.client.force_release("x", lease.token)
        (event,) = heard.until(holdfast.events.Forced)
        assert (event.name, event.token, event.count) == ("x", lease.token, 1)
        self.until_lost(lease)
