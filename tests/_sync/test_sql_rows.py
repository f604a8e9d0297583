"""(Generated from _async/test_sql_rows.py by tools/unasync.py: do not edit.) A fence in a row of the user's own: in a transaction, and in one statement with the work."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast.events import Accepted, Adopted, Refused
from holdfast.fencing import Fence
from holdfast.guards.sql_row import Row
from holdfast.model import Mode
from tests._sync.sql_suite import SQLSuite
from tests.guards.fences import DOMAIN, NEIGHBOURS
from tests.guards.sql_databases import FEWER
from tests.guards.sql_log import StatementLog

LESS = "leftover = leftover - 1"


@pytest.mark.slow
@pytest.mark.parametrize("way", FEWER)
class TestSQLRows(SQLSuite):
    """What holds on every database, with every kind of connection."""

    def row(self, **options: Any) -> Row:
        """Return a new row as a resource."""
        self.place.look(f"INSERT INTO stock (name, leftover) VALUES ('{self.resource}', 10)")
        return Row("stock", {"name": self.resource}, **(options or {"domain": DOMAIN}))

    def stored(self) -> tuple[Any, ...]:
        """Return what the row says, as it was committed."""
        columns = "leftover, fence, origin"
        return self.place.look(f"SELECT {columns} FROM stock WHERE name = '{self.resource}'")[0]

    def take(self, row: Row, fence: Fence) -> None:
        """Take one from the stock, in a transaction that begins with the guard."""
        with self.guard.transaction(row, fence):
            self.database.run(f"UPDATE stock SET {LESS} WHERE name = '{self.resource}'")

    def test_transaction(self) -> None:
        """The row's own column is the floor: equal passes, lower never, and nothing is written."""
        row = self.row()
        for high, low in NEIGHBOURS[:3]:
            self.take(row, self.fence(high))
            self.take(row, self.fence(high))
            with pytest.raises(holdfast.StaleToken, match=rf"'stock\(name={self.resource}\)'"):
                self.take(row, self.fence(low))
            self.place.look(f"UPDATE stock SET fence = 0 WHERE name = '{self.resource}'")
        assert self.stored() == (4, 0, None)
        assert [type(event) for event in self.heard] == [Accepted, Accepted, Refused] * 3

    def test_one_statement(self) -> None:
        """Judging, recording and work are one statement, and one event."""
        row = self.row()
        connection = self.database.raw()
        log = StatementLog(self.place, connection)
        if self.place.dialect == "sqlite":
            connection.set_trace_callback(log.append)
        self.database.rollback()
        log.news()
        assert self.guard.update(row, self.fence(5), LESS) is True
        sent = [one for one in log.news() if not one.startswith(("BEGIN", "COMMIT", "ROLLBACK"))]
        assert len(sent) == 1
        assert sent[0].startswith("UPDATE")
        assert self.guard.update(row, self.fence(5), LESS) is True
        with pytest.raises(holdfast.StaleToken, match="has seen token 5, yours is 4"):
            self.guard.update(row, self.fence(4), LESS)
        assert self.stored() == (8, 5, None)
        assert [type(event) for event in self.heard] == [Accepted, Accepted, Refused]

    def test_conditions_and_parameters(self) -> None:
        """A further condition that is not met is False and writes nothing; parameters are bound."""
        row, mark = self.row(), self.database.mark
        several = self.database.parameters(3)
        changes = f"leftover = leftover - {mark}"
        assert self.guard.update(row, self.fence(1), changes, several) is True
        assert self.guard.update(row, self.fence(2), LESS, where="leftover > 99") is False
        if not self.database.alchemy:
            several = (7, 7)
        where = f"leftover >= {mark}"
        if self.database.alchemy:
            several = {"n": 7}
        assert self.guard.update(row, self.fence(3), changes, several, where=where) is True
        assert self.guard.update(row, self.fence(3), changes, several, where=where) is False
        assert self.stored() == (0, 3, None)
        assert len(self.heard) == 2

    def test_row_that_is_not_there(self) -> None:
        """No row is an error of its own: it is not stale."""
        row = Row("stock", {"name": self.resource}, domain=DOMAIN)
        with pytest.raises(LookupError, match="There is no row stock"):
            self.take(row, self.fence(1))
        with pytest.raises(LookupError, match="There is no row stock"):
            self.guard.update(row, self.fence(1), LESS)
        with pytest.raises(Exception, match="no_such_table"):
            self.take(Row("no_such_table", {"id": 1}, domain=DOMAIN), self.fence(1))
        assert not self.heard
        self.work(1)

    def test_fence_that_was_never_set(self) -> None:
        """NULL is below no token: a sentence says how the column must be."""
        row = self.row()
        self.place.look(f"UPDATE stock SET fence = NULL WHERE name = '{self.resource}'")
        with pytest.raises(ValueError, match="NOT NULL DEFAULT 0"):
            self.take(row, self.fence(1))
        assert self.stored() == (10, None, None)

    def test_domain_in_the_code(self) -> None:
        """A token of another domain than the row is declared to have is not even sent."""
        row = self.row()
        with pytest.raises(holdfast.DomainMismatch, match=r"test:locks.*other:locks"):
            self.take(row, self.fence(1, domain="other:locks"))
        with pytest.raises(holdfast.DomainMismatch):
            self.guard.update(row, self.fence(1, domain="other:locks"), LESS)
        with pytest.raises(holdfast.NotSupported, match="set fence to 0"):
            self.guard.adopt(row, "other:locks")
        assert self.stored() == (10, 0, None)

    def test_domain_in_the_row(self) -> None:
        """The first token gives the row its domain, exactly; others are refused until adopted."""
        row = self.row(domain_column="origin")
        self.take(row, self.fence(7))
        assert self.stored() == (9, 7, DOMAIN)
        for other in (DOMAIN.upper(), f"{DOMAIN} ", "x"):
            with pytest.raises(holdfast.DomainMismatch):
                self.take(row, self.fence(9, domain=other))
            with pytest.raises(holdfast.DomainMismatch):
                self.guard.update(row, self.fence(9, domain=other), LESS)
        with pytest.raises(holdfast.StaleToken, match="has seen token 7, yours is 6"):
            self.take(row, self.fence(6))
        self.guard.adopt(row, "x")
        assert isinstance(self.heard[-1], Adopted)
        assert self.guard.update(row, self.fence(1, domain="x"), LESS) is True
        assert self.stored() == (8, 1, "x")

    def test_key_of_several_rows(self) -> None:
        """A key that fits several rows guards none of them."""
        self.row()
        self.resource += "-2"
        self.row()
        self.place.look(f"UPDATE stock SET origin = '{self.resource}' WHERE leftover = 10")
        row = Row("stock", {"origin": self.resource}, domain=DOMAIN)
        with pytest.raises(ValueError, match="a key that is its own"):
            with self.guard.transaction(row, self.fence(1)):
                raise AssertionError("was let in")
        assert self.stored()[:2] == (10, 0)

    def test_shared_leases_do_not_fit(self) -> None:
        """One column is one floor."""
        row = self.row()
        shared = self.fence(1, Mode.SHARED)
        with pytest.raises(holdfast.NotSupported, match="has one floor"):
            self.guard.transaction(row, shared)
        with pytest.raises(holdfast.NotSupported, match="has one floor"):
            self.guard.check(row, shared)

    def test_row_and_resource_together(self) -> None:
        """Both are judged in one transaction, or neither is recorded."""
        row = self.row()
        with self.guard.transaction({row: self.fence(5), self.resource: self.fence(6)}):
            pass
        with pytest.raises(holdfast.StaleToken):
            with self.guard.transaction({row: self.fence(4), self.resource: self.fence(7)}):
                raise AssertionError("was let in")
        assert self.stored()[1] == 5
        assert self.floors() == [(DOMAIN, 6, 0)]
