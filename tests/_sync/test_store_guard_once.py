"""(Generated from _async/test_store_guard_once.py by tools/unasync.py: do not edit.) `once` on any store: at most once per key, in the same save as the data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import holdfast
from tests._sync.store_suite import NAME, StoreSuite, fence


class TestOnce(StoreSuite):
    """Work under a key."""

    runs: int

    def once(self, token: int, work: Callable[[], Any], key: str = "k") -> Any:
        """Do it in a transaction of its own."""
        with self.guard.transaction(NAME, fence(token)) as item:
            return item.once(key, work)

    def counting(self, result: Any = None) -> Callable[[], Any]:
        """Return work that counts how often it runs."""
        self.runs = 0

        def work() -> Any:
            self.runs += 1
            return result

        return work

    def test_later_callers_get_the_result(self) -> None:
        """It runs once, and all get the same, also the first: what JSON makes of the result."""
        work = self.counting({"paid": (1, 2)})
        results = [self.once(token, work) for token in (5, 5, 6)]
        assert results == [{"paid": [1, 2]}] * 3
        assert self.runs == 1
        assert self.once(6, self.counting(None), "other") is None
        assert self.once(6, self.counting(1), "other") is None
        assert self.runs == 0

    def test_twice_in_one_transaction(self) -> None:
        """The same transaction gets the result that is not stored yet."""
        work = self.counting(1)
        with self.guard.transaction(NAME, fence(5)) as item:
            assert [item.once("k", work), item.once("k", work)] == [1, 1]
        assert self.runs == 1

    def test_data_and_result_are_stored_together(self) -> None:
        """Neither is there without the other: an error after the work takes both back."""
        with pytest.raises(KeyError, match="mine"):
            with self.guard.transaction(NAME, fence(5)) as item:
                item.once("k", self.adding(item))
                raise KeyError("mine")
        assert self.shelf.data() is None
        for token in (5, 6):
            with self.guard.transaction(NAME, fence(token)) as item:
                assert item.once("k", self.adding(item)) == 1
        assert self.shelf.data() == 1

    def adding(self, item: Any) -> Callable[[], int]:
        """Return work that adds one to the data."""

        def work() -> int:
            item.write((item.read() or 0) + 1)
            return int(item.read())

        return work

    def test_failure_leaves_the_key_free(self) -> None:
        """Work that raises has not been done: its data is taken back, and the next one runs."""
        with self.guard.transaction(NAME, fence(5)) as item:

            def fail() -> None:
                item.write("half")
                raise KeyError("mine")

            with pytest.raises(KeyError, match="mine"):
                item.once("k", fail)
            assert item.read() is None
        assert self.once(5, self.counting("done")) == "done"
        assert self.shelf.data() is None

    def test_failure_of_one_key_frees_no_other(self) -> None:
        """What was done earlier in the same transaction stays marked until it is stored."""
        with self.guard.transaction(NAME, fence(5)) as item:
            assert item.once("a", self.counting("done")) == "done"
            with pytest.raises(TypeError):
                item.once("b", self.counting(object()))
            with pytest.raises(holdfast.InProgress):
                self.once(5, self.counting(), "a")
            assert self.once(5, self.counting("free"), "b") == "free"
        assert self.once(5, self.counting(), "a") == "done"
        assert self.runs == 0

    def test_a_result_that_cannot_be_stored(self) -> None:
        """It is an error of the work: nothing is stored, and the key is free."""
        for result in (object(), float("nan"), {1, 2}):
            with pytest.raises(TypeError, match="result of 'k' cannot be stored as JSON"):
                self.once(5, self.counting(result))
        assert self.once(5, self.counting(1)) == 1

    def test_another_with_the_same_token_is_told(self) -> None:
        """While one is at work a second caller of the same holder gets InProgress, and no more."""
        with self.guard.transaction(NAME, fence(5)) as item:

            def work() -> str:
                with pytest.raises(holdfast.InProgress, match="at work on 'k' of 'orders/1'"):
                    self.once(5, self.counting())
                assert self.runs == 0
                assert self.once(5, self.counting("free"), "other") == "free"
                return "first"

            assert item.once("k", work) == "first"
        assert self.once(5, self.counting()) == "first"

    def test_a_newer_token_takes_over(self) -> None:
        """What an older holder left running is done by the newer, and the older stores nothing."""
        with pytest.raises(holdfast.StaleToken):
            with self.guard.transaction(NAME, fence(5)) as item:

                def work() -> str:
                    item.write("old")
                    assert self.once(6, self.counting("new")) == "new"
                    return "old"

                item.once("k", work)
        assert self.once(7, self.counting()) == "new"
        assert self.shelf.data() is None

    def test_a_runner_that_died(self) -> None:
        """Its mark stays: the same token is told so, and the next one takes over."""
        dead = self.guard.transaction(NAME, fence(5))
        dead.__enter__()
        left: list[tuple[Any, str | None, int]] = []

        def die() -> None:
            left.append(self.shelf.rows[NAME])
            raise KeyError("dying")

        with pytest.raises(KeyError, match="dying"):
            dead.once("k", die)
        self.shelf.rows[NAME] = left[0]  # as if it had been killed before it cleaned up
        with pytest.raises(holdfast.InProgress, match="If it has died, take the lock again"):
            self.once(5, self.counting())
        assert self.once(6, self.counting("done")) == "done"
        assert self.runs == 1

    def test_no_answer_to_the_save(self) -> None:
        """When it was not stored the key is free again; when it was, the result is there."""
        for key, stored in (("a", False), ("b", True)):

            def no_answer() -> None:
                raise ConnectionError("no answer")

            def lost_answer() -> bool:
                raise ConnectionError("no answer")

            with pytest.raises(ConnectionError):
                with self.guard.transaction(NAME, fence(5)) as item:
                    item.once(key, self.counting("first"))
                    if stored:
                        self.shelf.after_save.append(lost_answer)
                    else:
                        self.shelf.before_save.append(no_answer)
            assert self.once(5, self.counting("second"), key) == (
                "first" if stored else "second"
            )

    @pytest.mark.parametrize("key", ["", 7, None, "a\nb"])
    def test_bad_key(self, key: Any) -> None:
        """A key is a short printable text."""
        with pytest.raises((TypeError, ValueError)):
            self.once(5, self.counting(), key)
        assert self.runs == 0
