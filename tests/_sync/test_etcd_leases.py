"""(Generated from _async/test_etcd_leases.py by tools/unasync.py: do not edit.) Leases of etcd that end, by hand or by time, and claims that end before their lease does."""

from __future__ import annotations

import time
from typing import Any

from holdfast._concurrency import sleep
from holdfast.etcd_session import Session
from holdfast.model import Claim, Grant, Outcome, Reason
from holdfast.testing.etcd_harness import EtcdHarness
from holdfast.testing.running import elapsed
from holdfast.testing.servers.etcd import key
from tests._sync.etcd_suite import EtcdSuite

LONG = 30.0  # a TTL that nobody waits for
TENDED = 2.0  # a TTL that is waited for
QUICK = 10.0  # what is told, not timed, takes less


class TestRevoked(EtcdSuite):
    """The lease behind a client's locks ends, by hand or by time."""

    harness = EtcdHarness()

    def revoke(self) -> None:
        """Revoke every lease there is."""
        for lease in self.server.leases():
            self.server.ask("lease/revoke", {"ID": lease})

    def test_holder_is_told_at_once(self) -> None:
        """A holder hears of it by push, long before its TTL; the lock is free for others."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        started = time.monotonic()
        self.revoke()
        self.until_lost(lease)
        assert elapsed(started) < QUICK
        assert lease.lost_reason is Reason.EXPIRED
        second = self.take(self.connect().lock("x"))
        assert second.token > lease.token
        assert second.release() is True

    def test_client_goes_on_with_a_new_lease(self) -> None:
        """The next claim makes a new session; nothing of the old one is left."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        old = self.sessions()
        self.revoke()
        self.until_lost(lease)
        second = self.take(self.client.lock("x", ttl=LONG))
        assert second.token > lease.token
        (session,) = self.sessions()
        assert session not in old
        assert second.release() is True

    def test_claim_that_finds_its_lease_gone(self) -> None:
        """A claim under a lease that is gone, of which nobody has told, takes a new one at once."""
        self.cycle(self.client)
        self.proxy.cut()
        self.proxy.close_all()  # no watch tells
        self.revoke()
        self.proxy.heal()
        self.cycle(self.client)

    def test_waiter_queues_again(self) -> None:
        """A waiter whose place was lost with its lease takes a new one, and gets in."""
        lease = self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        waiter = self.queue(other, other.lock("x", ttl=LONG))
        owners, place = self.owners("x"), self.keys("x")[1]
        self.server.ask("lease/revoke", {"ID": self.lease_of(place)})
        self.until_so(lambda: self.owners("x") == owners and self.keys("x")[1] != place)
        assert lease.held
        assert lease.release() is True
        second = waiter.result()
        assert second.token > lease.token
        assert second.release() is True

    def test_key_removed_by_hand(self) -> None:
        """Whose key an administrator deletes hears of it with the next renewal."""
        lease = self.take(self.client.lock("x", ttl=1))
        self.server.ask("kv/deleterange", {"key": key(self.keys("x")[0])})
        self.until_lost(lease)
        assert lease.lost_reason is Reason.EXPIRED

    def test_renewal_compares_the_revision(self) -> None:
        """A key of the same name that was created later is not ours: no renewal, no release."""
        claim = self.claim("x", ttl=LONG)
        grant = self.grant(self.client, claim)
        (name,) = self.keys("x")
        self.server.ask("kv/deleterange", {"key": key(name)})
        self.server.ask("kv/put", {"key": key(name), "value": key("{}")})
        (renewal,) = self.client.engine.renew([claim], 5.0)
        assert renewal.outcome is Outcome.LOST
        assert isinstance(grant, Grant)
        assert self.keys("x") == [name]
        self.server.ask("kv/deleterange", {"key": key(name)})

    def test_who_is_not_renewed_is_removed(self) -> None:
        """A hold that nobody renews ends by its TTL although its client lives on."""
        self.cycle(self.client)
        kept = self.take(self.client.lock("y", ttl=1))
        grant = self.grant(self.client, self.claim("x", ttl=1))
        second = self.take(self.connect().lock("x"))
        assert second.token > grant.token
        assert kept.held
        assert second.release() is True
        assert kept.release() is True

    def test_lost_while_it_is_tended(self) -> None:
        """A session that is lost just when it is to be confirmed ends alone: others are kept alive.
        It was the only one, and what keeps all of them alive went with it (found by a soak)."""
        lease = self.take(self.client.lock("x", ttl=TENDED))
        sessions = self.client.engine._sessions  # type: ignore[attr-defined]
        (session,) = sessions._all
        lease.release()
        sessions.lose(session)
        assert not sessions._all
        sessions._tend(session)
        kept = self.take(self.client.lock("x", ttl=TENDED))
        sleep(2 * TENDED)
        assert kept.held
        kept.release()

    def test_session_that_is_given_up_meanwhile(self) -> None:
        """A claim that was about to use a session which ends this very moment has the next one."""
        self.cycle(self.client)
        sessions = self.client.engine._sessions  # type: ignore[attr-defined]
        honest = sessions.ready
        ended: list[Session] = []

        def late(claim: Claim, timeout: float) -> Session:
            session: Session = honest(claim, timeout)
            if not ended:
                ended.append(session)
                sessions.retire(session)
                sessions._give_up(session)
            return session

        sessions.ready = late
        lease = self.take(self.client.lock("x", ttl=LONG))
        lease.ensure_held()
        assert ended[0].gone
        assert not ended[0].tenants
        assert lease.release() is True

    def test_over_while_it_asks_again(self) -> None:
        """A claim whose time is over while it looks where it stands is not removed behind its back:
        what it is told then is true (found by the lab: two held the same lock)."""
        engine, claim = self.client.engine, self.claim("x", ttl=LONG)
        grant = self.grant(self.client, claim)
        sessions, look = engine._sessions, engine._look  # type: ignore[attr-defined]
        tenant, honest = sessions.tenants[claim.owner], look.read

        def late(*arguments: Any) -> Any:
            reply = honest(*arguments)
            sessions._tend(tenant.session)
            return reply

        tenant.expires, look.read = 0.0, late
        again = engine.claim(claim, 5.0)
        assert isinstance(again, Grant)
        assert again.token == grant.token
        assert self.owners("x") == [claim.owner]
        assert engine.release(claim, 5.0) is True

    def test_asks_again_while_it_is_removed(self) -> None:
        """A claim that was not renewed in time, and is just being removed, comes anew: what is
        removed then is not what it is told to have (found by the lab)."""
        engine, claim = self.client.engine, self.claim("x", ttl=LONG)
        grant = self.grant(self.client, claim)
        sessions = engine._sessions  # type: ignore[attr-defined]
        tenant, honest = sessions.tenants[claim.owner], sessions.free
        again: list[Grant] = []

        def late(*arguments: Any) -> bool:
            sessions.free = honest
            again.append(self.grant(self.client, claim))
            removed: bool = honest(*arguments)
            return removed

        tenant.expires, sessions.free = 0.0, late
        sessions._tend(tenant.session)
        assert again[0].token > grant.token
        assert self.owners("x") == [claim.owner]
        assert engine.release(claim, 5.0) is True
