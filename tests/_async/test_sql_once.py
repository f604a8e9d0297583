"""Work that the SQL guard does once per key: results, failures, and callers at the same time."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast.aio as holdfast
from holdfast.errors import InProgress
from holdfast.testing.running import AsyncSpawned
from tests._async.sql_suite import AsyncSQLSuite
from tests.guards.fences import DOMAIN
from tests.guards.sql_databases import FEWER, AsyncDatabase, AsyncSQLGuard

CROWD = 5
RESULT = {"paid": [1, 2.5, None, True, "ü \U0001f512"]}


@pytest.mark.slow
@pytest.mark.parametrize("way", FEWER)
class TestSQLOnce(AsyncSQLSuite):
    """What holds on every database, with every kind of connection."""

    async def pay(self) -> Any:
        """Do work that can be counted."""
        await self.add()
        return RESULT

    async def fail(self) -> None:
        """Do work that can be counted, and fail."""
        await self.add()
        raise ZeroDivisionError

    async def test_result_is_stored_with_the_work(self) -> None:
        """Later callers get the result of the first, whose work is done once."""
        assert await self.guard.once(self.resource, self.pay) == RESULT
        assert await self.guard.once(self.resource, self.fail) == RESULT
        _, guard = await self.other()
        assert await guard.once(self.resource, self.fail) == RESULT
        assert self.value() == 1

    async def test_nothing_is_a_result_too(self) -> None:
        """None is stored and given back; a tuple comes back as JSON has it, at once."""
        assert await self.guard.once(self.resource, self.add) is None
        assert await self.guard.once(self.resource, self.fail) is None

        async def pair() -> Any:
            return (1, 2)

        assert await self.guard.once(f"{self.resource}/2", pair) == [1, 2]

    async def test_failure_leaves_the_key_free(self) -> None:
        """Neither work nor key of a failure stay; nor of a result that cannot be stored."""
        with pytest.raises(ZeroDivisionError):
            await self.guard.once(self.resource, self.fail)

        async def unfit() -> Any:
            await self.add()
            return object()

        with pytest.raises(TypeError, match="cannot be stored as JSON"):
            await self.guard.once(self.resource, unfit)
        assert self.value() == 0
        assert await self.guard.once(self.resource, self.pay) == RESULT
        assert self.value() == 1

    async def test_inside_a_transaction(self) -> None:
        """Key and result are committed with the transaction around, or not at all."""
        with pytest.raises(ZeroDivisionError):
            async with self.guard.transaction(self.resource, self.fence(1)):
                assert await self.guard.once(self.resource, self.pay) == RESULT
                assert await self.guard.once(self.resource, self.fail) == RESULT
                raise ZeroDivisionError
        async with self.guard.transaction(self.resource, self.fence(1)):
            with pytest.raises(ZeroDivisionError):
                await self.guard.once(self.resource, self.fail)
            with pytest.raises(Exception, match="no_such_table"):
                await self.guard.once(self.resource, self.break_down)
            assert await self.guard.once(self.resource, self.pay) == RESULT
        assert self.value() == 1
        assert await self.guard.once(self.resource, self.fail) == RESULT

    async def break_down(self) -> None:
        """Do work that can be counted, and let a statement fail."""
        await self.add()
        await self.database.run("SELECT * FROM no_such_table")

    async def test_key_within_itself_is_told(self) -> None:
        """Work that asks for its own key would wait for itself; other keys are welcome."""

        async def again() -> Any:
            with pytest.raises(InProgress):
                await self.guard.once(self.resource, self.pay)
            with pytest.raises(ZeroDivisionError):
                await self.guard.once(f"{self.resource}/2", self.fail)
            with pytest.raises(RuntimeError, match="a transaction of this guard is open"):
                await self.work(1)
            return await self.guard.once(f"{self.resource}/3", self.pay)

        assert await self.guard.once(self.resource, again) == RESULT
        assert await self.guard.once(f"{self.resource}/3", self.fail) == RESULT
        assert self.value() == 1

    async def test_in_a_transaction_of_ones_own(self) -> None:
        """With `join` the user commits, or does not."""
        await self.work(1)
        for last in (False, True):
            if self.database.autocommit:
                await self.database.run("BEGIN")
            else:
                await self.guard.check(self.resource, self.fence(2))
            assert await self.guard.once(self.resource, self.pay, join=True) == RESULT
            if self.database.autocommit:
                await self.database.run("COMMIT" if last else "ROLLBACK")
            elif last:
                await self.database.commit()
            else:
                await self.database.rollback()
        assert self.value() == 2
        assert await self.guard.once(self.resource, self.fail) == RESULT

    async def test_joining_as_the_first_statement(self) -> None:
        """It begins what the driver would begin; where nothing begins by itself it is refused."""
        if self.database.autocommit:
            with pytest.raises(RuntimeError, match="There is no transaction for"):
                await self.guard.once(self.resource, self.pay, join=True)
            return
        with pytest.raises(ZeroDivisionError):
            await self.guard.once(self.resource, self.fail, join=True)
        assert await self.guard.once(self.resource, self.pay, join=True) == RESULT
        assert self.value() == 0, "not committed yet"
        await self.database.rollback()
        assert await self.guard.once(self.resource, self.pay, join=True) == RESULT
        await self.database.commit()
        assert self.value() == 1
        assert await self.guard.once(self.resource, self.fail) == RESULT

    async def test_crowd_does_it_once(self) -> None:
        """Callers at the same time wait for the first; if it fails, one of them does the work."""
        crowd = [await self.other() for _ in range(CROWD)]
        done: list[int] = []
        await self.work(1)

        async def come(number: int, guard: AsyncSQLGuard, database: AsyncDatabase) -> Any:
            async def pay() -> Any:
                await self.add(database)
                if not done and number < 0:
                    raise ZeroDivisionError
                done.append(number)
                return number

            return await guard.once(self.resource, pay)

        async def fail() -> None:
            await self.add()
            callers.extend(
                AsyncSpawned(come, number, guard, database)
                for number, (database, guard) in enumerate(crowd)
            )
            await self.until_blocked()
            raise ZeroDivisionError

        callers: list[AsyncSpawned[Any]] = []
        with pytest.raises(ZeroDivisionError):
            await self.guard.once(self.resource, fail)
        results = {await caller.result() for caller in callers}
        assert results == set(done)
        assert len(done) == 1
        assert self.value() == 2
        assert self.place.floors(self.resource) == [(DOMAIN, 1, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["postgresql", "mariadb", "sqlite"])
class TestSQLOncePatience(AsyncSQLSuite):
    """Callers that may not wait for ever."""

    async def test_who_may_not_wait_is_told(self) -> None:
        """A caller that the database lets wait no longer gets InProgress, and can ask again."""
        database, guard = await self.other()
        await database.run(
            {
                "sqlite": "PRAGMA busy_timeout = 10",
                "postgresql": "SET lock_timeout = '10ms'",
                "mariadb": "SET innodb_lock_wait_timeout = 1",
            }[self.way]
        )
        await database.commit()

        async def pay() -> int:
            with pytest.raises(InProgress, match="is at work on 'orders/"):
                await guard.once(self.resource, self.add)
            return 7

        assert await self.guard.once(self.resource, pay) == 7
        assert await guard.once(self.resource, self.add) == 7
        with pytest.raises(holdfast.StaleToken):
            await self.work(2)
            await self.work(1)
