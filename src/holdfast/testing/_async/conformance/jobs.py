"""Functions under a lock: decorators, names from arguments, singleton jobs (S31)."""

from __future__ import annotations

import time
from typing import Any

import pytest

import holdfast.aio as holdfast

from ...._concurrency import AsyncEvent, asleep
from ...running import AsyncSpawned, elapsed
from .base import AsyncBase


class AsyncJobTests(AsyncBase):
    """`@lock`, `@lock(lambda …)` and `@singleton`."""

    # --- decorators ---

    async def test_decorated_function_runs_under_the_lock(self) -> None:
        """Each call holds the lock, passes arguments and result through, and frees it."""
        other = self.connect()

        @self.client.lock("x")
        async def add(one: int, *, two: int) -> int:
            """Add two numbers."""
            lease = holdfast.current_lease()
            assert lease.name == "x"
            assert lease.held
            assert await other.lock("x").try_acquire() is None
            return one + two

        assert await add(1, two=2) == 3
        assert await add(3, two=4) == 7
        assert add.__name__ == "add"
        assert add.__doc__ == "Add two numbers."
        assert (await self.client.inspect("x")).kind is None

    async def test_decorated_calls_exclude_each_other(self) -> None:
        """Calls of one decorated function at the same time run one after another."""
        counter = 0

        @self.client.lock("x", timeout=self.harness.patience)
        async def increment() -> None:
            nonlocal counter
            seen = counter
            await asleep(0)
            counter = seen + 1

        callers = [AsyncSpawned(increment) for _ in range(8)]
        for caller in callers:
            await caller.result()
        assert counter == 8

    async def test_name_comes_from_the_arguments(self) -> None:
        """Each call locks the name that its arguments give; different names do not wait."""

        @self.client.lock(lambda order, **_: f"orders/{order}", timeout=0, ttl=20)
        async def ship(order: int, *, also: int | None = None) -> list[str]:
            if also is not None:
                return [holdfast.current_lease().name, *await ship(also)]
            assert holdfast.current_lease().ttl == 20
            return [holdfast.current_lease().name]

        assert await ship(7) == ["orders/7"]
        assert await ship(7, also=8) == ["orders/7", "orders/8"]
        error = await self.raises(holdfast.NotAcquired, lambda: ship(7, also=7))
        assert error.name == "orders/7"
        assert list(await self.client.locks()) == []

    async def test_reentrant_function_may_call_itself(self) -> None:
        """A recursive function under a reentrant lock holds it once, until the outermost return."""

        @self.client.lock("x", reentrant=True, timeout=0)
        async def down(depth: int) -> list[int]:
            token = holdfast.current_lease().token
            return [token, *await down(depth - 1)] if depth else [token]

        tokens = await down(3)
        assert len(tokens) == 4
        assert len(set(tokens)) == 1
        assert (await self.client.inspect("x")).kind is None

    async def test_bad_name_from_arguments_is_refused(self) -> None:
        """A name that the arguments make invalid raises InvalidName, and the body never runs."""

        @self.client.lock(lambda text: text)
        async def body(text: str) -> None:
            pytest.fail("ran without a lock")

        await self.raises(holdfast.InvalidName, body, "")
        await self.raises(holdfast.InvalidName, body, "a\nb")

    async def test_bad_options_of_a_decorator_fail_at_once(self) -> None:
        """Options are checked where the decorator stands, not at the first call."""
        with pytest.raises(ValueError, match="ttl"):
            self.client.lock(lambda: "x", ttl=-1)
        with pytest.raises(TypeError):
            self.client.lock(lambda: "x", nonsense=1)

    async def test_error_of_the_function_passes(self) -> None:
        """An error of the function frees the lock and reaches the caller."""

        @self.client.lock("x")
        async def fail() -> None:
            raise KeyError("the function's own")

        await self.raises(KeyError, fail)
        assert (await self.client.inspect("x")).kind is None

    async def test_current_lease_is_the_innermost(self) -> None:
        """current_lease() follows the nesting, and outside of all it raises."""
        with pytest.raises(holdfast.LockError, match="current_lease"):
            holdfast.current_lease()
        async with self.client.lock("a") as outer:
            assert holdfast.current_lease() is outer
            async with self.client.lock("b") as inner:
                assert holdfast.current_lease() is inner
            assert holdfast.current_lease() is outer
        with pytest.raises(holdfast.LockError, match="current_lease"):
            holdfast.current_lease()

    async def test_group_decorates_too(self) -> None:
        """A function can run under several locks at once."""

        @self.client.all_of(self.client.lock("a"), self.client.lock("b"))
        async def names() -> list[str]:
            return [shot.name for shot in await self.client.locks()]

        assert await names() == ["a", "b"]
        assert list(await self.client.locks()) == []

    # --- singleton ---

    async def test_second_run_is_skipped(self) -> None:
        """While the job runs somewhere, calling it elsewhere returns SKIPPED, which is falsy."""
        running, finish = AsyncEvent(), AsyncEvent()
        other = self.connect()
        heard = self.listen(other)

        async def job(result: str) -> str:
            assert holdfast.current_lease().held
            running.set()
            assert await finish.wait(self.harness.patience)
            return result

        first = AsyncSpawned(self.client.singleton("x")(job), "ran")
        assert await running.wait(self.harness.patience)
        skipped = await other.singleton("x")(job)("never")
        assert skipped is holdfast.SKIPPED
        assert not skipped
        await heard.until(holdfast.events.Skipped)
        finish.set()
        assert await first.result() == "ran"
        assert await other.singleton("x")(job)("later") == "later"

    async def test_failed_job_is_free_again(self) -> None:
        """An error of the job is raised, and the next call runs it."""
        outcomes: list[Any] = [KeyError("failed"), "ran"]

        @self.client.singleton("x")
        async def job() -> Any:
            outcome = outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        await self.raises(KeyError, job)
        assert await job() == "ran"

    async def test_at_least_outlives_a_short_job(self) -> None:
        """With at_least a short job counts as running for that long from its start, then not."""
        if not self.promises("at_least"):
            with pytest.raises(holdfast.NotSupported):
                self.client.singleton("x", at_least=1)
            return
        shortest = 1.5 * self.ttl
        runs: list[int] = []

        async def job() -> str:
            runs.append(len(runs))
            return "ran"

        once = self.client.singleton("x", at_least=shortest, ttl=self.ttl)(job)
        started = time.monotonic()
        assert await once() == "ran"
        assert await once() is holdfast.SKIPPED
        assert await self.connect().singleton("x")(job)() is holdfast.SKIPPED
        await self.client.close()  # the marker outlives the client
        elsewhere = self.connect().singleton("x")(job)

        async def ran_again() -> bool:
            return await elsewhere() == "ran"

        await self.until(ran_again)
        assert elapsed(started) >= shortest
        assert runs == [0, 1]

    async def test_at_least_adds_nothing_to_a_long_job(self) -> None:
        """A job that took longer than at_least leaves the lock free."""
        if not self.promises("at_least"):
            return

        @self.client.singleton("x", at_least=0.05)
        async def job() -> str:
            await asleep(0.1)
            return "ran"

        assert await job() == "ran"
        assert (await self.client.inspect("x")).kind is None
        assert await job() == "ran"

    @pytest.mark.parametrize("at_least", [-1, float("nan"), "5"])
    async def test_nonsense_at_least_is_refused(self, at_least: Any) -> None:
        """What is no time to count as running raises one sentence."""
        with pytest.raises((ValueError, TypeError), match="at_least must be"):
            self.client.singleton("x", at_least=at_least)
