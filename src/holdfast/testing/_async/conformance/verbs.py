"""The engine's own verbs: each may be repeated, and none acts for an owner that has let go (S1)."""

from __future__ import annotations

import time

import holdfast.aio as holdfast

from ....clocks import boot_clock
from ....model import Claim, Grant, Outcome, Queued, Reason, Renewal
from ...running import AsyncSpawned
from .base import AsyncBase
from .kinds import every_kind


class AsyncVerbTests(AsyncBase):
    """claim, wait, renew, release, force and inspect, without a lease in between."""

    async def renew(self, *claims: Claim) -> list[Renewal]:
        """Renew on the engine."""
        return await self.client.engine.renew(claims, self.harness.patience)

    async def release(self, claim: Claim) -> bool:
        """Release on the engine."""
        return await self.client.engine.release(claim, self.harness.patience)

    async def ask(self, claim: Claim) -> Grant | Queued:
        """Claim on the engine."""
        return await self.client.engine.claim(claim, self.harness.patience)

    async def refused(self, claim: Claim) -> Queued:
        """Make a claim that must not be granted."""
        answer = await self.ask(claim)
        assert isinstance(answer, Queued), f"{claim.name!r} was granted"
        return answer

    async def persist(self, claim: Claim) -> Grant:
        """Wait and ask again, as a client does, until the claim is granted."""
        end = time.monotonic() + self.harness.patience
        while isinstance(answer := await self.ask(claim), Queued):
            assert time.monotonic() < end, f"{claim.name!r} was never granted"
            pause = min(answer.retry_in, 1.0)
            if (grant := await self.client.engine.wait(claim, answer, pause)) is not None:
                return grant
        return answer

    @every_kind
    async def test_claim_twice_is_one_hold(self, kind: str) -> None:
        """An owner that claims again has the same token and a fresh lease, and holds once."""
        claim = self.claim("x", kind)
        first = await self.grant(self.client, claim)
        again = await self.grant(self.client, claim)
        assert again.token == first.token
        assert again.not_after >= first.not_after
        assert len((await self.client.inspect("x")).holders) == 1
        assert await self.release(claim) is True
        assert (await self.client.inspect("x")).kind is None

    async def test_grant_is_valid_for_less_than_its_ttl(self) -> None:
        """`not_after` lies before the send time plus the TTL: the engine frees it later (S8)."""
        await self.client.ping()
        before = boot_clock()
        grant = await self.grant(self.client, self.claim("x", ttl=20))
        assert before < grant.not_after < before + 20

    @every_kind
    async def test_queueing_twice_is_one_place(self, kind: str) -> None:
        """An owner that claims again while it waits keeps its one place in the queue."""
        await self.mutex(kind, "x")
        holder, waiter = self.claim("x", kind), self.claim("x", kind)
        await self.grant(self.client, holder)
        await self.refused(waiter)
        await self.refused(waiter)
        assert [one.owner for one in (await self.client.inspect("x")).waiters] == [waiter.owner]
        await self.release(holder)
        grant = await self.persist(waiter)
        assert (await self.grant(self.client, waiter)).token == grant.token
        assert await self.release(waiter) is True

    async def test_claim_without_queue_leaves_nothing(self) -> None:
        """A claim that does not want to wait is refused and forgotten."""
        holder = self.claim("x")
        await self.grant(self.client, holder)
        await self.refused(self.claim("x", queue=False))
        assert (await self.client.inspect("x")).waiters == ()
        await self.release(holder)
        assert (await self.client.inspect("x")).kind is None

    async def test_refusal_says_who_holds(self) -> None:
        """A busy answer names the holder's label and token, and when to ask again."""
        holder = self.claim("x", label="the one inside", ttl=20)
        grant = await self.grant(self.client, holder)
        answer = await self.refused(self.claim("x", queue=False))
        assert answer.retry_in > 0
        if answer.holder is not None:
            assert answer.holder.label == "the one inside"
            assert answer.holder.token == grant.token
            assert 0 < answer.holder.expires_in <= 20
        await self.release(holder)

    @every_kind
    async def test_release_twice_is_harmless(self, kind: str) -> None:
        """The first release says it held, the second that it did not; others keep their hold."""
        one, two = self.claim("x", kind), self.claim("x", kind)
        await self.mutex(kind, "x")
        await self.grant(self.client, one)
        assert await self.release(one) is True
        assert await self.release(one) is False
        grant = await self.grant(self.client, two)
        assert await self.release(one) is False
        assert (await self.grant(self.client, two)).token == grant.token
        assert await self.release(two) is True

    async def test_release_of_a_waiter_leaves_the_queue(self) -> None:
        """Releasing a queued claim ends its wait: whoever is behind it moves up."""
        holder, first, second = self.claim("x"), self.claim("x"), self.claim("x")
        await self.grant(self.client, holder)
        await self.refused(first)
        await self.refused(second)
        assert await self.release(first) is False
        assert [one.owner for one in (await self.client.inspect("x")).waiters] == [second.owner]
        assert await self.release(holder) is True
        await self.persist(second)
        assert await self.release(second) is True

    async def test_release_of_the_unknown_bars_its_claim(self) -> None:
        """A claim that arrives after its own withdrawal does not enter, now or later (S6)."""
        late = self.claim("x")
        await self.client.ping()
        assert await self.release(late) is False
        answer = await self.ask(late)
        assert isinstance(answer, Queued), "a withdrawn claim was granted"
        assert (await self.client.inspect("x")).holders == ()
        lease = await self.take(self.client.lock("x"))
        await lease.release()

    async def test_renew_answers_in_order(self) -> None:
        """Renewed, released, never known and expired claims are told apart, each in its place."""
        held, gone, strange = self.claim("a"), self.claim("b"), self.claim("c")
        other = self.claim("d", ttl=20)
        for claim in (held, gone, other):
            await self.grant(self.client, claim)
        await self.release(gone)
        before = boot_clock()
        answers = await self.renew(held, gone, strange, other)
        assert [answer.outcome for answer in answers] == [
            Outcome.RENEWED,
            Outcome.LOST,
            Outcome.LOST,
            Outcome.RENEWED,
        ]
        assert before < answers[0].not_after < before + held.ttl + self.harness.patience
        assert answers[3].not_after > before + 10
        assert (await self.client.inspect("c")).kind is None, "renewing never creates"
        await self.release(held)
        await self.release(other)

    async def test_renew_never_revives(self) -> None:
        """After its release, or once its TTL is over, a claim is lost, and stays so."""
        claim = self.claim("x")
        await self.die_holding(claim)
        await self.until_idle("x")
        answers = await self.renew(claim)
        assert answers[0].outcome is Outcome.LOST
        assert answers[0].reason is Reason.EXPIRED
        assert (await self.client.inspect("x")).kind is None

    async def test_renew_says_stolen_when_another_holds(self) -> None:
        """A claim that was replaced is told so, and its waiter's place is no hold either."""
        old, new = self.claim("x"), self.claim("x")
        await self.grant(self.client, old)
        await self.release(old)
        await self.grant(self.client, new)
        answers = await self.renew(old)
        assert answers[0].outcome is Outcome.LOST
        assert answers[0].reason is Reason.STOLEN
        waiting = self.claim("x")
        await self.refused(waiting)
        assert (await self.renew(waiting))[0].outcome is Outcome.LOST
        await self.release(waiting)
        await self.release(new)

    async def test_late_renewal_does_not_undo_a_newer_one(self) -> None:
        """A renewal of an older revision that comes after a newer one takes no time away (S14)."""
        if self.client.guarantees.expiry == "session":
            return
        old = self.claim("x")
        new = old._replace(ttl=20, revision=old.revision + 1)
        await self.grant(self.client, old)
        for claim in (new, old):
            assert (await self.renew(claim))[0].outcome is Outcome.RENEWED
        (entry,) = (await self.client.inspect("x")).holders
        assert entry.expires_in > 10
        assert await self.release(old) is True

    async def test_force_takes_only_what_it_names(self) -> None:
        """A token that nobody has breaks nothing; the right one does, once."""
        claim = self.claim("x")
        grant = await self.grant(self.client, claim)
        engine, key, patience = self.client.engine, claim.key, self.harness.patience
        assert await engine.force(key, grant.token + 1, patience) == 0
        assert await engine.force(key, grant.token - 1, patience) == 0
        assert await engine.force(key, grant.token, patience) == 1
        assert await engine.force(key, grant.token, patience) == 0
        assert await engine.force(key, None, patience) == 0
        assert (await self.renew(claim))[0].outcome is Outcome.LOST

    async def test_unknown_record_is_empty(self) -> None:
        """Looking at a name that nobody uses is no error, and creates nothing."""
        snapshot = await self.client.inspect("never used")
        assert snapshot.name == "never used"
        assert snapshot.kind is None
        assert snapshot.holders == snapshot.waiters == ()
        assert list(await self.client.locks()) == []

    async def test_wait_ends_with_its_time(self) -> None:
        """A wait without a grant returns None, and the place in the queue stays."""
        holder, waiter = self.claim("x", ttl=20), self.claim("x", ttl=20)
        await self.grant(self.client, holder)
        queued = await self.refused(waiter)
        assert await self.client.engine.wait(waiter, queued, 0.02) is None
        assert [one.owner for one in (await self.client.inspect("x")).waiters] == [waiter.owner]
        await self.release(waiter)
        await self.release(holder)

    async def test_stop_waiting_ends_every_wait(self) -> None:
        """stop_waiting makes waits in progress, and later ones, return None at once."""
        client = self.connect()
        holder, waiter = self.claim("x", ttl=20), self.claim("x", ttl=20)
        await self.grant(self.client, holder)
        await client.ping()
        queued = await client.engine.claim(waiter, self.harness.patience)
        assert isinstance(queued, Queued)
        waiting = AsyncSpawned(client.engine.wait, waiter, queued, 60.0)
        client.engine.stop_waiting()
        assert await waiting.result(self.harness.patience) is None
        assert await client.engine.wait(waiter, queued, 60.0) is None
        await client.engine.release(waiter, self.harness.patience)
        await self.release(holder)

    async def test_ping_answers(self) -> None:
        """An engine that is there says so."""
        await self.client.ping()
        assert isinstance(self.client, holdfast.Client)
