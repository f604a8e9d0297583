"""Where the SQL guard stands in a transaction: first, or not at all; and what it costs."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import pytest

import holdfast.aio as holdfast
from holdfast.events import Accepted
from holdfast.guards.sql_dialects import sql_schema
from tests._async.sql_suite import AsyncSQLSuite
from tests.guards.fences import DOMAIN
from tests.guards.sql_databases import WAYS, AsyncSQLGuard
from tests.guards.sql_log import StatementLog


@pytest.mark.parametrize("way", WAYS)
class TestSQLTransactions(AsyncSQLSuite):
    """What holds on every database, with every kind of connection."""

    async def test_one_extra_statement(self) -> None:
        """An accepted transaction has one statement more than without the guard; a refused two."""
        await self.work(1)
        connection = await self.database.raw()
        log = StatementLog(self.place, connection)
        if self.place.dialect == "sqlite":
            await connection.set_trace_callback(log.append)
        await self.database.rollback()
        log.news()
        await self.begin_and_end(self.add)
        without = log.news()
        await self.work(2)
        guarded = log.news()
        assert len(guarded) == len(without) + 1, guarded
        first = next(one for one in guarded if not one.startswith(("BEGIN", "START")))
        assert "holdfast_fence" in first
        with pytest.raises(holdfast.StaleToken):
            await self.work(1)
        refused = [one for one in log.news() if "holdfast_fence" in one]
        assert [one.split()[0] for one in refused] == ["INSERT", "SELECT"]

    async def begin_and_end(self, work: Any) -> None:
        """Do the work in a transaction as a user writes it, without a guard."""
        if self.database.autocommit:
            await self.database.run("BEGIN")
            await work()
            await self.database.run("COMMIT")
        else:
            await work()
            await self.database.commit()

    async def test_open_transaction_is_refused(self) -> None:
        """A guard that is not first is refused, and what came before it is not committed by it."""
        await self.begin()
        if not self.sees_reads:
            await self.add()
        for call, arguments in (
            (self.work, (1,)),
            (self.guard.adopt, (self.resource, DOMAIN)),
            (self.guard.once, (self.resource, self.add)),
            (self.guard.create, ()),
        ):
            with pytest.raises(RuntimeError, match="has a transaction open already"):
                await call(*arguments)
        await self.roll_back()
        assert self.value() == 0
        assert not self.heard
        await self.work(1)
        assert self.value() == 1

    @property
    def sees_reads(self) -> bool:
        """Whether a SELECT begins a transaction that can be seen."""
        return self.way != "sqlite"

    async def roll_back(self) -> None:
        if self.database.autocommit:
            await self.database.run("ROLLBACK")
        else:
            await self.database.rollback()

    async def test_nested_transaction_is_refused(self) -> None:
        """One transaction at a time; the outer one goes on as if nothing had been tried."""
        async with self.guard.transaction(self.resource, self.fence(1)):
            with pytest.raises(RuntimeError, match=r"guard.transaction\({resource: lease"):
                await self.work(2)
            with pytest.raises(RuntimeError, match="a transaction of this guard is open"):
                await self.guard.check(self.resource, self.fence(2))
            await self.add()
        assert self.value() == 1
        assert self.floors() == [(DOMAIN, 1, 0)]

    async def test_failed_transaction_is_not_taken_for_a_commit(self) -> None:
        """PostgreSQL rolls back after an error, even if told to commit: nobody is told Accepted."""
        await self.work(1)

        async def swallow() -> None:
            async with self.guard.transaction(self.resource, self.fence(2)):
                await self.add()
                with pytest.raises(Exception, match="no_such_table"):
                    await self.database.run("SELECT * FROM no_such_table")

        if self.place.dialect != "postgresql":
            await swallow()
            assert (self.value(), len(self.heard)) == (2, 2)
            return
        with pytest.raises(RuntimeError, match="a statement in it had failed"):
            await swallow()
        assert (self.value(), len(self.heard)) == (1, 1)
        await self.begin()
        with pytest.raises(Exception, match="no_such_table"):
            await self.database.run("SELECT * FROM no_such_table")
        with pytest.raises(RuntimeError, match="has failed before"):
            await self.work(3)
        await self.roll_back()
        await self.work(3)

    async def test_transaction_that_ends_inside_is_told(self) -> None:
        """A commit inside the block ends the protection: that is an error, not Accepted."""
        await self.work(1)
        with pytest.raises(RuntimeError, match="ended before the with block did"):
            async with self.guard.transaction(self.resource, self.fence(2)):
                if self.database.autocommit:
                    await self.database.run("COMMIT")
                else:
                    await self.database.commit()
        assert len(self.heard) == 1
        await self.work(3)

    # --- Inside the user's own transaction. ---

    async def test_check_in_a_transaction_of_ones_own(self) -> None:
        """The same statement, first in the user's transaction; nothing is committed by it."""
        await self.work(1)
        if self.database.autocommit:
            with pytest.raises(RuntimeError, match="checked outside of a transaction"):
                await self.guard.check(self.resource, self.fence(1))
            return
        await self.guard.check(self.resource, self.fence(3))
        await self.add()
        await self.database.rollback()
        assert self.floors() == [(DOMAIN, 1, 0)]
        await self.guard.check({self.resource: self.fence(2), "x": self.fence(1)})
        await self.add()
        await self.database.commit()
        assert self.floors() == [(DOMAIN, 2, 0)]
        with pytest.raises(holdfast.StaleToken):
            await self.guard.check(self.resource, self.fence(1))
        await self.database.rollback()
        assert self.value() == 2
        assert len([event for event in self.heard if isinstance(event, Accepted)]) == 1

    async def test_check_that_is_not_first_is_refused(self) -> None:
        """Where the order matters; SQLite runs its transactions one after the other anyway."""
        await self.work(1)
        await self.begin()
        if self.place.dialect == "sqlite":
            await self.guard.check(self.resource, self.fence(2))
        else:
            with pytest.raises(RuntimeError, match="has a transaction open already"):
                await self.guard.check(self.resource, self.fence(2))
        await self.roll_back()
        assert self.floors() == [(DOMAIN, 1, 0)]

    # --- Tables. ---

    async def test_missing_tables(self) -> None:
        """They are made when first missed, by several at once too; else a sentence says how."""
        prefix = f"p{token_hex(6)}_"
        database, strict = await self.other(prefix=prefix, create=False)
        sentence = rf"{prefix}fence.*are not there.*guard\.create\(\)"
        with pytest.raises(RuntimeError, match=sentence):
            async with strict.transaction(self.resource, self.fence(1)):
                await self.add(database)
        with pytest.raises(RuntimeError, match=sentence):
            await strict.check(self.resource, self.fence(1))
        await database.rollback()
        with pytest.raises(RuntimeError, match=sentence):
            await strict.once(self.resource, self.add)
        lenient = AsyncSQLGuard(self.database.connection, prefix=prefix)
        with pytest.raises(RuntimeError, match=sentence):
            await lenient.check(self.resource, self.fence(1))
        await self.database.rollback()
        assert self.value() == 0
        async with lenient.transaction(self.resource, self.fence(3)):
            await self.add()
        assert self.place.floors(self.resource, prefix) == [(DOMAIN, 3, 0)]
        with pytest.raises(holdfast.StaleToken):
            async with strict.transaction(self.resource, self.fence(2)):
                await self.add(database)

    async def test_tables_by_hand_and_by_migration(self) -> None:
        """`create` makes them, again without harm; `sql_schema` is the same for a migration."""
        for how in ("create", "migration"):
            prefix = f"p{token_hex(6)}_"
            database, guard = await self.other(prefix=prefix, create=False)
            if how == "create":
                await guard.create()
                await guard.create()
            else:
                for statement in sql_schema(self.place.dialect, prefix=prefix).split(";\n")[:-1]:
                    self.place.look(statement)
            async with guard.transaction(self.resource, self.fence(1)):
                assert await guard.once("x", self.give) == "given"
            assert self.place.floors(self.resource, prefix) == [(DOMAIN, 1, 0)]
            await database.rollback()

    async def give(self) -> str:
        return "given"
