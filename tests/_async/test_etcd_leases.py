"""Leases of etcd that end, by hand or by time, and claims that end before their lease does."""

from __future__ import annotations

import time
from typing import Any

from holdfast._concurrency import asleep
from holdfast.etcd_session import Session
from holdfast.model import Claim, Grant, Outcome, Reason
from holdfast.testing.etcd_harness import EtcdHarness
from holdfast.testing.running import elapsed
from holdfast.testing.servers.etcd import key
from tests._async.etcd_suite import AsyncEtcdSuite

LONG = 30.0  # a TTL that nobody waits for
TENDED = 2.0  # a TTL that is waited for
QUICK = 10.0  # what is told, not timed, takes less


class TestRevoked(AsyncEtcdSuite):
    """The lease behind a client's locks ends, by hand or by time."""

    harness = EtcdHarness()

    async def revoke(self) -> None:
        """Revoke every lease there is."""
        for lease in self.server.leases():
            self.server.ask("lease/revoke", {"ID": lease})

    async def test_holder_is_told_at_once(self) -> None:
        """A holder hears of it by push, long before its TTL; the lock is free for others."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        started = time.monotonic()
        await self.revoke()
        await self.until_lost(lease)
        assert elapsed(started) < QUICK
        assert lease.lost_reason is Reason.EXPIRED
        second = await self.take(self.connect().lock("x"))
        assert second.token > lease.token
        assert await second.release() is True

    async def test_client_goes_on_with_a_new_lease(self) -> None:
        """The next claim makes a new session; nothing of the old one is left."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        old = self.sessions()
        await self.revoke()
        await self.until_lost(lease)
        second = await self.take(self.client.lock("x", ttl=LONG))
        assert second.token > lease.token
        (session,) = self.sessions()
        assert session not in old
        assert await second.release() is True

    async def test_claim_that_finds_its_lease_gone(self) -> None:
        """A claim under a lease that is gone, of which nobody has told, takes a new one at once."""
        await self.cycle(self.client)
        self.proxy.cut()
        self.proxy.close_all()  # no watch tells
        await self.revoke()
        self.proxy.heal()
        await self.cycle(self.client)

    async def test_waiter_queues_again(self) -> None:
        """A waiter whose place was lost with its lease takes a new one, and gets in."""
        lease = await self.take(self.client.lock("x", ttl=LONG))
        other = self.connect()
        waiter = await self.queue(other, other.lock("x", ttl=LONG))
        owners, place = self.owners("x"), self.keys("x")[1]
        self.server.ask("lease/revoke", {"ID": self.lease_of(place)})
        await self.until_so(lambda: self.owners("x") == owners and self.keys("x")[1] != place)
        assert lease.held
        assert await lease.release() is True
        second = await waiter.result()
        assert second.token > lease.token
        assert await second.release() is True

    async def test_key_removed_by_hand(self) -> None:
        """Whose key an administrator deletes hears of it with the next renewal."""
        lease = await self.take(self.client.lock("x", ttl=1))
        self.server.ask("kv/deleterange", {"key": key(self.keys("x")[0])})
        await self.until_lost(lease)
        assert lease.lost_reason is Reason.EXPIRED

    async def test_renewal_compares_the_revision(self) -> None:
        """A key of the same name that was created later is not ours: no renewal, no release."""
        claim = self.claim("x", ttl=LONG)
        grant = await self.grant(self.client, claim)
        (name,) = self.keys("x")
        self.server.ask("kv/deleterange", {"key": key(name)})
        self.server.ask("kv/put", {"key": key(name), "value": key("{}")})
        (renewal,) = await self.client.engine.renew([claim], 5.0)
        assert renewal.outcome is Outcome.LOST
        assert isinstance(grant, Grant)
        assert self.keys("x") == [name]
        self.server.ask("kv/deleterange", {"key": key(name)})

    async def test_who_is_not_renewed_is_removed(self) -> None:
        """A hold that nobody renews ends by its TTL although its client lives on."""
        await self.cycle(self.client)
        kept = await self.take(self.client.lock("y", ttl=1))
        grant = await self.grant(self.client, self.claim("x", ttl=1))
        second = await self.take(self.connect().lock("x"))
        assert second.token > grant.token
        assert kept.held
        assert await second.release() is True
        assert await kept.release() is True

    async def test_lost_while_it_is_tended(self) -> None:
        """A session that is lost just when it is to be confirmed ends alone: others are kept alive.
        It was the only one, and what keeps all of them alive went with it (found by a soak)."""
        lease = await self.take(self.client.lock("x", ttl=TENDED))
        sessions = self.client.engine._sessions  # type: ignore[attr-defined]
        (session,) = sessions._all
        await lease.release()
        sessions.lose(session)
        assert not sessions._all
        await sessions._tend(session)
        kept = await self.take(self.client.lock("x", ttl=TENDED))
        await asleep(2 * TENDED)
        assert kept.held
        await kept.release()

    async def test_session_that_is_given_up_meanwhile(self) -> None:
        """A claim that was about to use a session which ends this very moment has the next one."""
        await self.cycle(self.client)
        sessions = self.client.engine._sessions  # type: ignore[attr-defined]
        honest = sessions.ready
        ended: list[Session] = []

        async def late(claim: Claim, timeout: float) -> Session:
            session: Session = await honest(claim, timeout)
            if not ended:
                ended.append(session)
                sessions.retire(session)
                await sessions._give_up(session)
            return session

        sessions.ready = late
        lease = await self.take(self.client.lock("x", ttl=LONG))
        await lease.ensure_held()
        assert ended[0].gone
        assert not ended[0].tenants
        assert await lease.release() is True

    async def test_over_while_it_asks_again(self) -> None:
        """A claim whose time is over while it looks where it stands is not removed behind its back:
        what it is told then is true (found by the lab: two held the same lock)."""
        engine, claim = self.client.engine, self.claim("x", ttl=LONG)
        grant = await self.grant(self.client, claim)
        sessions, look = engine._sessions, engine._look  # type: ignore[attr-defined]
        tenant, honest = sessions.tenants[claim.owner], look.read

        async def late(*arguments: Any) -> Any:
            reply = await honest(*arguments)
            await sessions._tend(tenant.session)
            return reply

        tenant.expires, look.read = 0.0, late
        again = await engine.claim(claim, 5.0)
        assert isinstance(again, Grant)
        assert again.token == grant.token
        assert self.owners("x") == [claim.owner]
        assert await engine.release(claim, 5.0) is True

    async def test_asks_again_while_it_is_removed(self) -> None:
        """A claim that was not renewed in time, and is just being removed, comes anew: what is
        removed then is not what it is told to have (found by the lab)."""
        engine, claim = self.client.engine, self.claim("x", ttl=LONG)
        grant = await self.grant(self.client, claim)
        sessions = engine._sessions  # type: ignore[attr-defined]
        tenant, honest = sessions.tenants[claim.owner], sessions.free
        again: list[Grant] = []

        async def late(*arguments: Any) -> bool:
            sessions.free = honest
            again.append(await self.grant(self.client, claim))
            removed: bool = await honest(*arguments)
            return removed

        tenant.expires, sessions.free = 0.0, late
        await sessions._tend(tenant.session)
        assert again[0].token > grant.token
        assert self.owners("x") == [claim.owner]
        assert await engine.release(claim, 5.0) is True
