"""Every statement of the SQL guard: what judges and records a token, in one.

Rule 1: a token is judged by the statement that writes it, on the row as it is when it is locked.
        No row is read first.
Rule 2: "passed" is said by the database and never concluded from silence. SQLite and PostgreSQL
        return the row that was written. MySQL sets LAST_INSERT_ID() to 1, which every driver
        reports as lastrowid; the count of rows would mean one thing or another, depending on how
        the client connected (CLIENT_FOUND_ROWS). Only 1: one driver cuts it to 32 bits.
Rule 3: values are bound, never written into a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..fencing import Fence
from ..model import Mode
from .sql_dialects import Dialect, Tables
from .sql_row import Row

NAMED = ":holdfast_{}"  # how SQLAlchemy marks a parameter; drivers have "?" or "%s"


class Statement(NamedTuple):
    """A text, the values of its parameters in their order, and the user's named ones."""

    text: str
    values: tuple[Any, ...] = ()
    more: Mapping[str, Any] = {}

    def named(self) -> dict[str, Any]:
        """Return the values by the names they have in the text, if it was written with NAMED."""
        own = {f"holdfast_{number}": value for number, value in enumerate(self.values, 1)}
        return own | dict(self.more)


class Draft:
    """Collects the values of a statement while its text is being written, from left to right."""

    def __init__(self, dialect: Dialect, mark: str) -> None:
        self._dialect = dialect
        self._mark = mark
        self._values: list[Any] = []

    def __call__(self, value: Any) -> str:
        """Bind a value, and return what stands for it in the text."""
        self._values.append(value)
        return self._mark.format(len(self._values))

    def name(self, value: str) -> str:
        """Bind the name of a resource, domain or key, where columns are bytes as bytes."""
        if self._dialect.name != "mysql":
            return self(value)
        # Not bound as bytes, which not every driver can, nor in the charset of the connection.
        return f"UNHEX({self(value.encode().hex())})"

    def skip(self, values: Iterable[Any]) -> None:
        """Leave room for values whose marks stand in the text already."""
        self._values.extend(values)

    def done(self, text: str, more: Mapping[str, Any] = {}) -> Statement:
        """Return the statement."""
        return Statement(text, tuple(self._values), more)


class Statements:
    """The statements, in one dialect and with one driver's marks."""

    def __init__(self, tables: Tables, mark: str) -> None:
        self._tables = tables
        self._mark = mark

    @property
    def dialect(self) -> Dialect:
        """The dialect they are written in."""
        return self._tables.dialect

    def _draft(self) -> Draft:
        return Draft(self.dialect, self._mark)

    # --- Floors. ---

    def judge(self, resource: str | Row, fence: Fence) -> Statement:
        """Record the token if it passes."""
        if isinstance(resource, Row):
            return self.update(resource, fence)
        if self.dialect.returning:
            return self._upsert(resource, fence)
        return self._upsert_mysql(resource, fence)

    def _upsert(self, resource: str, fence: Fence) -> Statement:
        bind = self._draft()
        own, other = _floors_of(fence)
        passes = f"f.domain = excluded.domain AND f.exclusive_floor <= excluded.{own}"
        if fence.mode is Mode.EXCLUSIVE:
            passes += f" AND f.shared_floor <= excluded.{own}"
        return bind.done(
            f"INSERT INTO {self._tables.fence} AS f (resource, domain, {own}, {other})"
            f" VALUES ({bind.name(resource)}, {bind.name(fence.domain)}, {bind(fence.token)}, 0)"
            f" ON CONFLICT (resource) DO UPDATE SET {own} ="
            f" CASE WHEN f.{own} < excluded.{own} THEN excluded.{own} ELSE f.{own} END"
            f" WHERE {passes} RETURNING exclusive_floor, shared_floor"
        )

    def _upsert_mysql(self, resource: str, fence: Fence) -> Statement:
        bind = self._draft()
        own, other = _floors_of(fence)
        token = fence.token
        return bind.done(
            f"INSERT INTO {self._tables.fence} (resource, domain, {own}, {other})"
            f" VALUES ({bind.name(resource)}, {bind.name(fence.domain)},"
            f" IF(LAST_INSERT_ID(1), {bind(token)}, 0), 0)"
            f" ON DUPLICATE KEY UPDATE {own} = IF(domain = {bind.name(fence.domain)}"
            f" AND exclusive_floor <= {bind(token)}"
            + (f" AND shared_floor <= {bind(token)}" if fence.mode is Mode.EXCLUSIVE else "")
            + f", GREATEST({own}, {bind(token)}), IF(LAST_INSERT_ID(0), 0, {own}))"
        )

    def floors(self, resource: str | Row, *, lock: bool = False) -> Statement:
        """Read domain and floors, and keep others from changing them if `lock`."""
        bind = self._draft()
        columns, table, where = self._place(bind, resource)
        locking = lock and self.dialect.name != "sqlite"
        return bind.done(
            f"SELECT {columns} FROM {table} WHERE {where}{' FOR UPDATE' if locking else ''}"
        )

    def _place(self, bind: Draft, resource: str | Row) -> tuple[str, str, str]:
        if not isinstance(resource, Row):
            where = f"resource = {bind.name(resource)}"
            return "domain, exclusive_floor, shared_floor", self._tables.fence, where
        quoted = self.dialect.identifier
        domain = "NULL" if resource.domain_column is None else quoted(resource.domain_column)
        columns = f"{domain}, {quoted(resource.column)}, 0"
        return columns, quoted(resource.table), self._row(bind, resource)

    def adopt(self, resource: str | Row, domain: str) -> Statement:
        """Move a resource that has floors to another domain."""
        bind = self._draft()
        if isinstance(resource, Row):
            assert resource.domain_column is not None
            quoted = self.dialect.identifier
            return bind.done(
                f"UPDATE {quoted(resource.table)} SET {quoted(resource.column)} = 0,"
                f" {quoted(resource.domain_column)} = {bind(domain)}"
                f" WHERE {self._row(bind, resource)}"
            )
        return bind.done(
            f"UPDATE {self._tables.fence} SET domain = {bind.name(domain)},"
            f" exclusive_floor = 0, shared_floor = 0 WHERE resource = {bind.name(resource)}"
        )

    def settle(self, resource: str, domain: str) -> Statement:
        """Give a resource that nobody has touched its domain."""
        bind = self._draft()
        return bind.done(
            f"INSERT INTO {self._tables.fence} (resource, domain, exclusive_floor, shared_floor)"
            f" VALUES ({bind.name(resource)}, {bind.name(domain)}, 0, 0)"
        )

    # --- A fence in a row of the user's. ---

    def update(
        self,
        row: Row,
        fence: Fence,
        changes: str = "",
        where: str = "",
        parameters: Any = (),
    ) -> Statement:
        """Record the token in the row if it passes, with further changes of the same row."""
        named = self._mark == NAMED
        bind, quoted = self._draft(), self.dialect.identifier
        column, token = quoted(row.column), bind(fence.token)
        if not self.dialect.returning:
            token = f"IF(LAST_INSERT_ID(1), {token}, 0)"
        changed = [f"{column} = {token}"]
        if row.domain_column is not None:
            changed.append(f"{quoted(row.domain_column)} = {bind(fence.domain)}")
        # Then what the user wrote, in one piece: so the order of theirs is theirs.
        bind.skip(() if named else parameters)
        changed += [changes] if changes else []
        conditions = [f"({where})"] if where else []
        conditions += [self._row(bind, row), f"{column} <= {bind(fence.token)}"]
        if row.domain_column is not None:
            own = quoted(row.domain_column)
            same = self.dialect.same_bytes
            conditions.append(
                f"({own} IS NULL OR {own} = ''"
                f" OR {same.format(own)} = {same.format(bind(fence.domain))})"
            )
        returned = f" RETURNING {column}, 0" if self.dialect.returning else ""
        return bind.done(
            f"UPDATE {quoted(row.table)} SET {', '.join(changed)}"
            f" WHERE {' AND '.join(conditions)}{returned}",
            dict(parameters) if named else {},
        )

    def _row(self, bind: Draft, row: Row) -> str:
        quoted = self.dialect.identifier
        return " AND ".join(f"{quoted(name)} = {bind(value)}" for name, value in row.key.items())

    # --- Work that is done once. ---

    def claim(self, key: str) -> Statement:
        """Take the key if nobody has it; wait for the end of a transaction that may."""
        bind, once = self._draft(), self._tables.once
        if self.dialect.returning:
            return bind.done(
                f"INSERT INTO {once} (name) VALUES ({bind.name(key)})"
                " ON CONFLICT (name) DO NOTHING RETURNING 1"
            )
        return bind.done(
            f"INSERT INTO {once} (name, result) VALUES ({bind.name(key)},"
            " NULLIF(LAST_INSERT_ID(1), 1))"
            " ON DUPLICATE KEY UPDATE result = IF(LAST_INSERT_ID(0), NULL, result)"
        )

    def result(self, key: str) -> Statement:
        """Read what was stored under a key."""
        bind = self._draft()
        name = bind.name(key)
        return bind.done(
            f"SELECT result FROM {self._tables.once} WHERE name = {name}{self.dialect.last_read}"
        )

    def store(self, key: str, result: str) -> Statement:
        """Store the result of a key that was taken."""
        bind = self._draft()
        return bind.done(
            f"UPDATE {self._tables.once} SET result = {bind(result)} WHERE name = {bind.name(key)}"
        )


def _floors_of(fence: Fence) -> tuple[str, str]:
    """Return the column that a fence raises, and the other one."""
    columns = ("exclusive_floor", "shared_floor")
    return columns if fence.mode is Mode.EXCLUSIVE else (columns[1], columns[0])
