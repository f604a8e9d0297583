"""The SQL guard on real databases, through every kind of connection: who is let in, who is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import holdfast.aio as holdfast
from holdfast.events import Accepted, Adopted, Refused
from holdfast.model import Mode
from holdfast.testing.running import AsyncSpawned
from tests._async.sql_suite import AsyncSQLSuite
from tests.guards.fences import BAD_FENCES, DOMAIN, NEIGHBOURS, mixture
from tests.guards.sql_databases import WAYS, AsyncSQLGuard

ROUNDS = 4


@pytest.mark.parametrize("way", WAYS)
class TestSQLGuard(AsyncSQLSuite):
    """What holds on every database, with every kind of connection."""

    # --- Who is let in. ---

    async def test_floors_are_those_of_the_model(self) -> None:
        """Whoever passes or not, and what is remembered, is what `judge` says, step by step."""
        for fence, floors, passes in mixture(7, 18):
            if passes:
                async with self.guard.transaction(self.resource, fence):
                    pass
            else:
                with pytest.raises(holdfast.StaleToken):
                    async with self.guard.transaction(self.resource, fence):
                        raise AssertionError("was let in")
            assert self.floors() == [floors], fence
            event = self.heard[-1]
            assert isinstance(event, Accepted | Refused)
            assert not passes or (floors and event.seen == floors.seen)
        assert {type(event) for event in self.heard} == {Accepted, Refused}

    async def test_tokens_are_compared_as_integers(self) -> None:
        """One more is more, at any size; equal passes."""
        for high, low in NEIGHBOURS:
            self.resource += "'s"
            for token in (low, high, high):
                async with self.guard.transaction(self.resource, self.fence(token)):
                    pass
            with pytest.raises(holdfast.StaleToken) as refused:
                async with self.guard.transaction(self.resource, self.fence(low)):
                    raise AssertionError("was let in")
            assert (refused.value.seen, refused.value.offered) == (high, low)
            assert self.floors() == [(DOMAIN, high, 0)]

    async def test_names_differ_by_every_byte(self) -> None:
        """Neither case, accents nor spaces at the end make two names one."""
        names = ["Straße", "Strasse", "STRASSE", "strasse", "strasse ", "strasse  ", "straße"]
        names += ["caf\u00e9", "cafe\u0301", "cafe", "%s", "?", ":x", "a\\b", "a'b", "\U0001f512"]
        for number, name in enumerate(names, 1):
            key = f"{self.resource}/{name}"
            async with self.guard.transaction(key, self.fence(100 - number)):
                assert await self.guard.once(key, _giving(number)) == number
            assert await self.guard.once(key, _giving(0)) == number

    async def test_real_leases(self) -> None:
        """A lease is shown as it is; one that was overtaken is refused."""
        async with holdfast.connect("memory://", namespace=self.resource) as client:
            first = await client.lock("x").acquire()
            assert first is not None
            async with self.guard.transaction(self.resource, first):
                await self.add()
            await first.release()
            async with client.lock("x") as second:
                async with self.guard.transaction(self.resource, second):
                    await self.add()
                with pytest.raises(holdfast.StaleToken, match="another holder came after you"):
                    async with self.guard.transaction(self.resource, first):
                        await self.add()
        assert self.value() == 2

    async def test_who_comes_meanwhile_waits_and_is_judged_then(self) -> None:
        """An older holder that comes while a newer one is at work is refused when that is done."""
        await self.work(1)
        database, guard = await self.other()

        async def come_late() -> None:
            async with guard.transaction(self.resource, self.fence(1)):
                await self.add(database)

        async with self.guard.transaction(self.resource, self.fence(2)):
            late = AsyncSpawned(come_late)
            await self.until_blocked()
            await self.add()
            assert not late.done
        with pytest.raises(holdfast.StaleToken):
            await late.result()
        assert self.value() == 2

    async def test_two_resources_are_locked_in_one_order(self) -> None:
        """Transactions that name the same two in any order never wait for each other."""
        one, two = f"{self.resource}/1", f"{self.resource}/2"
        database, guard = await self.other()
        await self.work(1)

        async def both(guard: AsyncSQLGuard, database: Any, *names: str) -> None:
            for _ in range(ROUNDS):
                async with guard.transaction({name: self.fence(5) for name in names}):
                    await self.add(database)

        other = AsyncSpawned(both, guard, database, two, one)
        await both(self.guard, self.database, one, two)
        await other.result()
        assert self.value() == 1 + 2 * ROUNDS
        assert self.place.floors(one) == self.place.floors(two) == [(DOMAIN, 5, 0)]
        with pytest.raises(holdfast.StaleToken, match="/2' has seen token 5"):
            async with guard.transaction({one: self.fence(6), two: self.fence(4)}):
                await self.add(database)
        assert self.place.floors(one) == [(DOMAIN, 5, 0)], "all or none"

    # --- Domains. ---

    async def test_another_domain_is_refused_until_adopted(self) -> None:
        """Tokens of two origins are never compared; the error names both, and nothing changes."""
        await self.work(7)
        with pytest.raises(holdfast.DomainMismatch, match=r"test:locks.*other:locks"):
            await self.work(9, domain="other:locks")
        await self.guard.adopt(self.resource, DOMAIN)
        assert self.floors() == [(DOMAIN, 7, 0)], "its own domain changes nothing"
        assert not any(isinstance(event, Adopted) for event in self.heard)
        await self.guard.adopt(self.resource, "other:locks")
        adopted = self.heard[-1]
        assert isinstance(adopted, Adopted)
        assert (adopted.previous, adopted.domain) == (DOMAIN, "other:locks")
        assert self.floors() == [("other:locks", 0, 0)]
        await self.work(1, domain="other:locks")
        with pytest.raises(holdfast.DomainMismatch):
            await self.work(9)
        assert self.value() == 2
        await self.guard.adopt(f"{self.resource}/new", DOMAIN)
        assert self.place.floors(f"{self.resource}/new") == [(DOMAIN, 0, 0)]

    # --- Work, token and events are one. ---

    async def test_what_fails_leaves_neither_work_nor_token(self) -> None:
        """An error in the body rolls both back: the older token may still come. Nobody is told."""
        await self.work(1)
        with pytest.raises(ZeroDivisionError):
            async with self.guard.transaction(self.resource, self.fence(9)):
                await self.add()
                raise ZeroDivisionError
        assert self.floors() == [(DOMAIN, 1, 0)]
        await self.work(2)
        assert self.value() == 2
        assert [event.offered for event in self.heard if isinstance(event, Accepted)] == [1, 2]

    async def test_events_tell_what_is_stored(self) -> None:
        """Accepted comes when others see the work; Refused says what was seen and offered."""
        seen: list[int] = []
        self.guard.listen(lambda event: seen.append(self.value()))
        await self.work(5)
        with pytest.raises(holdfast.StaleToken):
            await self.work(4)
        assert seen == [1, 1]
        accepted, refused = self.heard
        assert isinstance(accepted, Accepted)
        assert isinstance(refused, Refused)
        for event, offered in ((accepted, 5), (refused, 4)):
            assert (event.name, event.engine, event.domain) == (self.resource, "sql", DOMAIN)
            assert (event.seen, event.offered, event.mode) == (5, offered, Mode.EXCLUSIVE)
        assert "has seen token 5, yours is 4" in refused.error

    async def test_shared_leases_read(self) -> None:
        """Readers come beside one another and keep older writers out; `once` is not for them."""
        for token in (5, 4):
            async with self.guard.transaction(self.resource, self.fence(token, Mode.SHARED)):
                with pytest.raises(holdfast.NotSupported, match="take the lock exclusively"):
                    await self.guard.once(self.resource, _giving(1))
        with pytest.raises(holdfast.StaleToken):
            await self.work(4)
        await self.work(5)
        with pytest.raises(holdfast.StaleToken, match="nothing was read"):
            await self.work(4, Mode.SHARED)
        assert [event.seen for event in self.heard if isinstance(event, Accepted)] == [5, 5, 5]

    # --- Bad input. ---

    async def test_bad_fences(self) -> None:
        """What is no fence is refused in a sentence, before anything is sent."""
        for fence, error, sentence in BAD_FENCES:
            with pytest.raises(error, match=sentence):
                async with self.guard.transaction(self.resource, fence):
                    await self.add()
            with pytest.raises(error, match=sentence):
                await self.guard.check(self.resource, fence)
        assert self.value() == 0
        assert not self.floors()
        assert not self.heard

    async def test_semaphores_cannot_fence(self) -> None:
        """Several hold one at once, so none is the newest."""
        lease = SimpleNamespace(token=1, domain=DOMAIN, mode=Mode.EXCLUSIVE, limit=2, name="seats")
        with pytest.raises(holdfast.NotSupported, match="'seats' cannot fence"):
            self.guard.transaction(self.resource, lease)

    async def test_bad_arguments(self) -> None:
        """Resources, keys and domains that are none are refused in a sentence."""
        fence = self.fence(1)
        for bad, error in (
            (7, TypeError),
            ("", ValueError),
            ("a\n", ValueError),
            ("é" * 128, ValueError),
        ):
            with pytest.raises(error, match="resource"):
                self.guard.transaction(bad, fence)  # type: ignore[arg-type]
            with pytest.raises(error):
                await self.guard.once(bad, _giving(1))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="given as"):
            self.guard.transaction({self.resource: fence}, fence)
        with pytest.raises(TypeError, match="given as"):
            self.guard.transaction({})
        with pytest.raises(ValueError, match="A domain is"):
            await self.guard.adopt(self.resource, "")


def _giving(result: Any) -> Any:
    """Return work that gives this result."""

    async def work() -> Any:
        return result

    return work
