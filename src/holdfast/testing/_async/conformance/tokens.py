"""Tokens rise for ever: over release, expiry, force, close, and whatever the name is used for."""

from __future__ import annotations

import pytest

import holdfast.aio as holdfast

from .base import AsyncBase
from .kinds import KINDS, every_kind

ENDINGS = ("release", "expiry", "force", "close", "taken away")


class AsyncTokenTests(AsyncBase):
    """Fencing tokens (S18)."""

    @every_kind
    async def test_token_is_a_positive_int_below_2_63(self, kind: str) -> None:
        """A token fits a signed 64-bit column, and each grant has a larger one."""
        lock = await self.mutex(kind, "x")
        tokens = []
        for _ in range(5):
            lease = await self.take(lock)
            tokens.append(lease.token)
            await lease.release()
        assert all(type(token) is int and 0 < token < 2**63 for token in tokens)
        assert tokens == sorted(set(tokens))

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_token_rises_over_every_ending(self, ending: str) -> None:
        """However a hold ended, the next one of another client has a larger token."""
        self.ended: holdfast.Lease | None = None
        first = await self.end("x", ending)
        lease = await self.take(self.connect().lock("x"))
        assert lease.token > first
        await lease.release()

    async def test_token_rises_over_kinds(self) -> None:
        """One name has one sequence, whatever kinds of lock it is used for."""
        tokens = []
        for kind in ("lock", "rwlock", "semaphore-1", "tree", "election"):
            assert kind in KINDS
            lease = await self.take(await self.mutex(kind, "x"))
            tokens.append(lease.token)
            await lease.release()
        assert tokens == sorted(set(tokens))

    async def test_renewing_keeps_the_token(self) -> None:
        """Neither renewal nor extend nor ensure_held changes the token of a hold."""
        lease = await self.take(self.client.lock("x", ttl=self.ttl))
        token = lease.token
        heard = self.listen(self.client)
        renewed = await heard.until(holdfast.events.Renewed, 2)
        assert {event.token for event in renewed} == {token}
        await lease.extend()
        await lease.ensure_held()
        assert lease.token == token
        assert [one.token for one in (await self.client.inspect("x")).holders] == [token]
        await lease.release()

    async def test_refusal_costs_no_hold(self) -> None:
        """A refused or withdrawn attempt never lowers what comes after it."""
        lease = await self.take(self.client.lock("x"))
        assert await self.client.lock("x").try_acquire() is None
        assert await self.client.lock("x").acquire(timeout=self.harness.brief) is None
        await lease.release()
        second = await self.take(self.client.lock("x"))
        assert second.token > lease.token
        await second.release()

    async def end(self, name: str, ending: str) -> int:
        """Hold a lock, end it in that way, and return the token that it had."""
        if ending == "expiry":
            return (await self.die_holding(self.claim(name))).token
        client = self.connect(ttl=self.ttl)
        lease = self.ended = await self.take(client.lock(name))
        if ending == "release":
            assert await lease.release() is True
        elif ending == "force":
            assert await self.client.force_release(name, lease.token) == 1
        elif ending == "taken away":
            assert await client.engine.release(self.claim_behind(lease), self.harness.patience)
        else:
            await client.close()
        return lease.token
