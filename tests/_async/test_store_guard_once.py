"""`once` on any store: at most once per key, in the same save as the data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import holdfast.aio as holdfast
from tests._async.store_suite import NAME, AsyncStoreSuite, fence


class TestOnce(AsyncStoreSuite):
    """Work under a key."""

    runs: int

    async def once(self, token: int, work: Callable[[], Awaitable[Any]], key: str = "k") -> Any:
        """Do it in a transaction of its own."""
        async with self.guard.transaction(NAME, fence(token)) as item:
            return await item.once(key, work)

    def counting(self, result: Any = None) -> Callable[[], Awaitable[Any]]:
        """Return work that counts how often it runs."""
        self.runs = 0

        async def work() -> Any:
            self.runs += 1
            return result

        return work

    async def test_later_callers_get_the_result(self) -> None:
        """It runs once, and all get the same, also the first: what JSON makes of the result."""
        work = self.counting({"paid": (1, 2)})
        results = [await self.once(token, work) for token in (5, 5, 6)]
        assert results == [{"paid": [1, 2]}] * 3
        assert self.runs == 1
        assert await self.once(6, self.counting(None), "other") is None
        assert await self.once(6, self.counting(1), "other") is None
        assert self.runs == 0

    async def test_twice_in_one_transaction(self) -> None:
        """The same transaction gets the result that is not stored yet."""
        work = self.counting(1)
        async with self.guard.transaction(NAME, fence(5)) as item:
            assert [await item.once("k", work), await item.once("k", work)] == [1, 1]
        assert self.runs == 1

    async def test_data_and_result_are_stored_together(self) -> None:
        """Neither is there without the other: an error after the work takes both back."""
        with pytest.raises(KeyError, match="mine"):
            async with self.guard.transaction(NAME, fence(5)) as item:
                await item.once("k", self.adding(item))
                raise KeyError("mine")
        assert self.shelf.data() is None
        for token in (5, 6):
            async with self.guard.transaction(NAME, fence(token)) as item:
                assert await item.once("k", self.adding(item)) == 1
        assert self.shelf.data() == 1

    def adding(self, item: Any) -> Callable[[], Awaitable[int]]:
        """Return work that adds one to the data."""

        async def work() -> int:
            item.write((item.read() or 0) + 1)
            return int(item.read())

        return work

    async def test_failure_leaves_the_key_free(self) -> None:
        """Work that raises has not been done: its data is taken back, and the next one runs."""
        async with self.guard.transaction(NAME, fence(5)) as item:

            async def fail() -> None:
                item.write("half")
                raise KeyError("mine")

            with pytest.raises(KeyError, match="mine"):
                await item.once("k", fail)
            assert item.read() is None
        assert await self.once(5, self.counting("done")) == "done"
        assert self.shelf.data() is None

    async def test_failure_of_one_key_frees_no_other(self) -> None:
        """What was done earlier in the same transaction stays marked until it is stored."""
        async with self.guard.transaction(NAME, fence(5)) as item:
            assert await item.once("a", self.counting("done")) == "done"
            with pytest.raises(TypeError):
                await item.once("b", self.counting(object()))
            with pytest.raises(holdfast.InProgress):
                await self.once(5, self.counting(), "a")
            assert await self.once(5, self.counting("free"), "b") == "free"
        assert await self.once(5, self.counting(), "a") == "done"
        assert self.runs == 0

    async def test_a_result_that_cannot_be_stored(self) -> None:
        """It is an error of the work: nothing is stored, and the key is free."""
        for result in (object(), float("nan"), {1, 2}):
            with pytest.raises(TypeError, match="result of 'k' cannot be stored as JSON"):
                await self.once(5, self.counting(result))
        assert await self.once(5, self.counting(1)) == 1

    async def test_another_with_the_same_token_is_told(self) -> None:
        """While one is at work a second caller of the same holder gets InProgress, and no more."""
        async with self.guard.transaction(NAME, fence(5)) as item:

            async def work() -> str:
                with pytest.raises(holdfast.InProgress, match="at work on 'k' of 'orders/1'"):
                    await self.once(5, self.counting())
                assert self.runs == 0
                assert await self.once(5, self.counting("free"), "other") == "free"
                return "first"

            assert await item.once("k", work) == "first"
        assert await self.once(5, self.counting()) == "first"

    async def test_a_newer_token_takes_over(self) -> None:
        """What an older holder left running is done by the newer, and the older stores nothing."""
        with pytest.raises(holdfast.StaleToken):
            async with self.guard.transaction(NAME, fence(5)) as item:

                async def work() -> str:
                    item.write("old")
                    assert await self.once(6, self.counting("new")) == "new"
                    return "old"

                await item.once("k", work)
        assert await self.once(7, self.counting()) == "new"
        assert self.shelf.data() is None

    async def test_a_runner_that_died(self) -> None:
        """Its mark stays: the same token is told so, and the next one takes over."""
        dead = self.guard.transaction(NAME, fence(5))
        await dead.__aenter__()
        left: list[tuple[Any, str | None, int]] = []

        async def die() -> None:
            left.append(self.shelf.rows[NAME])
            raise KeyError("dying")

        with pytest.raises(KeyError, match="dying"):
            await dead.once("k", die)
        self.shelf.rows[NAME] = left[0]  # as if it had been killed before it cleaned up
        with pytest.raises(holdfast.InProgress, match="If it has died, take the lock again"):
            await self.once(5, self.counting())
        assert await self.once(6, self.counting("done")) == "done"
        assert self.runs == 1

    async def test_no_answer_to_the_save(self) -> None:
        """When it was not stored the key is free again; when it was, the result is there."""
        for key, stored in (("a", False), ("b", True)):

            async def no_answer() -> None:
                raise ConnectionError("no answer")

            def lost_answer() -> bool:
                raise ConnectionError("no answer")

            with pytest.raises(ConnectionError):
                async with self.guard.transaction(NAME, fence(5)) as item:
                    await item.once(key, self.counting("first"))
                    if stored:
                        self.shelf.after_save.append(lost_answer)
                    else:
                        self.shelf.before_save.append(no_answer)
            assert await self.once(5, self.counting("second"), key) == (
                "first" if stored else "second"
            )

    @pytest.mark.parametrize("key", ["", 7, None, "a\nb"])
    async def test_bad_key(self, key: Any) -> None:
        """A key is a short printable text."""
        with pytest.raises((TypeError, ValueError)):
            await self.once(5, self.counting(), key)
        assert self.runs == 0
