"""(Generated from _async/test_sql_transactions.py by tools/unasync.py: do not edit.) Where the SQL guard stands in a transaction: first, or not at all; and what it costs."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import pytest

import holdfast
from holdfast.events import Accepted
from holdfast.guards.sql_dialects import sql_schema
from tests._sync.sql_suite import SQLSuite
from tests.guards.fences import DOMAIN
from tests.guards.sql_databases import WAYS, SQLGuard
from tests.guards.sql_log import StatementLog


@pytest.mark.parametrize("way", WAYS)
class TestSQLTransactions(SQLSuite):
    """What holds on every database, with every kind of connection."""

    def test_one_extra_statement(self) -> None:
        """An accepted transaction has one statement more than without the guard; a refused two."""
        self.work(1)
        connection = self.database.raw()
        log = StatementLog(self.place, connection)
        if self.place.dialect == "sqlite":
            connection.set_trace_callback(log.append)
        self.database.rollback()
        log.news()
        self.begin_and_end(self.add)
        without = log.news()
        self.work(2)
        guarded = log.news()
        assert len(guarded) == len(without) + 1, guarded
        first = next(one for one in guarded if not one.startswith(("BEGIN", "START")))
        assert "holdfast_fence" in first
        with pytest.raises(holdfast.StaleToken):
            self.work(1)
        refused = [one for one in log.news() if "holdfast_fence" in one]
        assert [one.split()[0] for one in refused] == ["INSERT", "SELECT"]

    def begin_and_end(self, work: Any) -> None:
        """Do the work in a transaction as a user writes it, without a guard."""
        if self.database.autocommit:
            self.database.run("BEGIN")
            work()
            self.database.run("COMMIT")
        else:
            work()
            self.database.commit()

    def test_open_transaction_is_refused(self) -> None:
        """A guard that is not first is refused, and what came before it is not committed by it."""
        self.begin()
        if not self.sees_reads:
            self.add()
        for call, arguments in (
            (self.work, (1,)),
            (self.guard.adopt, (self.resource, DOMAIN)),
            (self.guard.once, (self.resource, self.add)),
            (self.guard.create, ()),
        ):
            with pytest.raises(RuntimeError, match="has a transaction open already"):
                call(*arguments)
        self.roll_back()
        assert self.value() == 0
        assert not self.heard
        self.work(1)
        assert self.value() == 1

    @property
    def sees_reads(self) -> bool:
        """Whether a SELECT begins a transaction that can be seen."""
        return self.way != "sqlite"

    def roll_back(self) -> None:
        if self.database.autocommit:
            self.database.run("ROLLBACK")
        else:
            self.database.rollback()

    def test_nested_transaction_is_refused(self) -> None:
        """One transaction at a time; the outer one goes on as if nothing had been tried."""
        with self.guard.transaction(self.resource, self.fence(1)):
            with pytest.raises(RuntimeError, match=r"guard.transaction\({resource: lease"):
                self.work(2)
            with pytest.raises(RuntimeError, match="a transaction of this guard is open"):
                self.guard.check(self.resource, self.fence(2))
            self.add()
        assert self.value() == 1
        assert self.floors() == [(DOMAIN, 1, 0)]

    def test_failed_transaction_is_not_taken_for_a_commit(self) -> None:
        """PostgreSQL rolls back after an error, even if told to commit: nobody is told Accepted."""
        self.work(1)

        def swallow() -> None:
            with self.guard.transaction(self.resource, self.fence(2)):
                self.add()
                with pytest.raises(Exception, match="no_such_table"):
                    self.database.run("SELECT * FROM no_such_table")

        if self.place.dialect != "postgresql":
            swallow()
            assert (self.value(), len(self.heard)) == (2, 2)
            return
        with pytest.raises(RuntimeError, match="a statement in it had failed"):
            swallow()
        assert (self.value(), len(self.heard)) == (1, 1)
        self.begin()
        with pytest.raises(Exception, match="no_such_table"):
            self.database.run("SELECT * FROM no_such_table")
        with pytest.raises(RuntimeError, match="has failed before"):
            self.work(3)
        self.roll_back()
        self.work(3)

    def test_transaction_that_ends_inside_is_told(self) -> None:
        """A commit inside the block ends the protection: that is an error, not Accepted."""
        self.work(1)
        with pytest.raises(RuntimeError, match="ended before the with block did"):
            with self.guard.transaction(self.resource, self.fence(2)):
                if self.database.autocommit:
                    self.database.run("COMMIT")
                else:
                    self.database.commit()
        assert len(self.heard) == 1
        self.work(3)

    # --- Inside the user's own transaction. ---

    def test_check_in_a_transaction_of_ones_own(self) -> None:
        """The same statement, first in the user's transaction; nothing is committed by it."""
        self.work(1)
        if self.database.autocommit:
            with pytest.raises(RuntimeError, match="checked outside of a transaction"):
                self.guard.check(self.resource, self.fence(1))
            return
        self.guard.check(self.resource, self.fence(3))
        self.add()
        self.database.rollback()
        assert self.floors() == [(DOMAIN, 1, 0)]
        self.guard.check({self.resource: self.fence(2), "x": self.fence(1)})
        self.add()
        self.database.commit()
        assert self.floors() == [(DOMAIN, 2, 0)]
        with pytest.raises(holdfast.StaleToken):
            self.guard.check(self.resource, self.fence(1))
        self.database.rollback()
        assert self.value() == 2
        assert len([event for event in self.heard if isinstance(event, Accepted)]) == 1

    def test_check_that_is_not_first_is_refused(self) -> None:
        """Where the order matters; SQLite runs its transactions one after the other anyway."""
        self.work(1)
        self.begin()
        if self.place.dialect == "sqlite":
            self.guard.check(self.resource, self.fence(2))
        else:
            with pytest.raises(RuntimeError, match="has a transaction open already"):
                self.guard.check(self.resource, self.fence(2))
        self.roll_back()
        assert self.floors() == [(DOMAIN, 1, 0)]

    # --- Tables. ---

    def test_missing_tables(self) -> None:
        """They are made when first missed, by several at once too; else a sentence says how."""
        prefix = f"p{token_hex(6)}_"
        database, strict = self.other(prefix=prefix, create=False)
        sentence = rf"{prefix}fence.*are not there.*guard\.create\(\)"
        with pytest.raises(RuntimeError, match=sentence):
            with strict.transaction(self.resource, self.fence(1)):
                self.add(database)
        with pytest.raises(RuntimeError, match=sentence):
            strict.check(self.resource, self.fence(1))
        database.rollback()
        with pytest.raises(RuntimeError, match=sentence):
            strict.once(self.resource, self.add)
        lenient = SQLGuard(self.database.connection, prefix=prefix)
        with pytest.raises(RuntimeError, match=sentence):
            lenient.check(self.resource, self.fence(1))
        self.database.rollback()
        assert self.value() == 0
        with lenient.transaction(self.resource, self.fence(3)):
            self.add()
        assert self.place.floors(self.resource, prefix) == [(DOMAIN, 3, 0)]
        with pytest.raises(holdfast.StaleToken):
            with strict.transaction(self.resource, self.fence(2)):
                self.add(database)

    def test_tables_by_hand_and_by_migration(self) -> None:
        """`create` makes them, again without harm; `sql_schema` is the same for a migration."""
        for how in ("create", "migration"):
            prefix = f"p{token_hex(6)}_"
            database, guard = self.other(prefix=prefix, create=False)
            if how == "create":
                guard.create()
                guard.create()
            else:
                for statement in sql_schema(self.place.dialect, prefix=prefix).split(";\n")[:-1]:
                    self.place.look(statement)
            with guard.transaction(self.resource, self.fence(1)):
                assert guard.once("x", self.give) == "given"
            assert self.place.floors(self.resource, prefix) == [(DOMAIN, 1, 0)]
            database.rollback()

    def give(self) -> str:
        return "given"
