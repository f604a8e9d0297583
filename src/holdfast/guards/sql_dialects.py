"""What differs between SQLite, PostgreSQL and MySQL/MariaDB: words, types, and the tables' schema.

Rule 1: names are compared byte by byte: no case, accent or trailing space is ignored.
Rule 2: identifiers are checked and quoted. Not with double quotes where those may also mean a
        text: SQLite takes "fence" for a text if there is no such column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")


def check_identifier(name: Any) -> str:
    """Return the name of a table or column if it can be one; a schema may stand before it."""
    if not isinstance(name, str) or not all(_WORD.fullmatch(part) for part in name.split(".")):
        raise ValueError(
            f"{name!r} cannot name a table or column here: 1 to 63 letters, digits and _ can."
        )
    return name


@dataclass(frozen=True)
class Dialect:
    """One family of databases."""

    name: str
    quote: str
    begin: str
    returning: bool  # a statement can return what it has written
    last_read: str  # what makes a SELECT see the newest row, whatever the isolation
    same_bytes: str  # an expression for a text column, compared byte by byte
    name_type: str
    domain_type: str
    number_type: str
    json_type: str
    time_type: str
    table_options: str = ""

    def identifier(self, name: str) -> str:
        """Return a name, or several with dots between them, as it stands in a statement."""
        parts = check_identifier(name).split(".")
        return ".".join(f"{self.quote}{part}{self.quote}" for part in parts)


SQLITE = Dialect(
    name="sqlite",
    quote="`",
    begin="BEGIN IMMEDIATE",  # the write lock at once: who waits for it has read nothing yet
    returning=True,
    last_read="",
    same_bytes="{}",
    name_type="TEXT",
    domain_type="TEXT",
    number_type="INTEGER",
    json_type="TEXT",
    time_type="TEXT",
)
POSTGRESQL = Dialect(
    name="postgresql",
    quote='"',
    begin="BEGIN",
    returning=True,
    last_read="",
    same_bytes="{}",
    name_type='TEXT COLLATE "C"',
    domain_type='TEXT COLLATE "C"',
    number_type="BIGINT",
    json_type="TEXT",
    time_type="TIMESTAMP WITH TIME ZONE",
)
MYSQL = Dialect(
    name="mysql",
    quote="`",
    begin="START TRANSACTION",
    returning=False,
    last_read=" FOR UPDATE",
    same_bytes="CAST({} AS BINARY)",
    name_type="VARBINARY(255)",
    domain_type="VARBINARY(1020)",
    number_type="BIGINT",
    json_type="LONGTEXT CHARACTER SET ascii",
    time_type="TIMESTAMP",
    table_options=" ENGINE=InnoDB",
)
DIALECTS = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL}


def find_dialect(name: str) -> Dialect:
    """Return the dialect of that name."""
    if name not in DIALECTS:
        raise ValueError(f"There is no dialect {name!r}; known are: {', '.join(DIALECTS)}.")
    return DIALECTS[name]


@dataclass(frozen=True)
class Tables:
    """The guard's own tables: the floors of each resource, and the results of `once`."""

    dialect: Dialect
    prefix: str = "holdfast_"

    @property
    def fence(self) -> str:
        """The table of floors."""
        return self.dialect.identifier(f"{self.prefix}fence")

    @property
    def once(self) -> str:
        """The table of results."""
        return self.dialect.identifier(f"{self.prefix}once")

    @property
    def names(self) -> tuple[str, str]:
        """What errors of the database call them, without the schema."""
        own = self.prefix.rpartition(".")[2]
        return f"{own}fence", f"{own}once"

    def schema(self) -> tuple[str, str]:
        """Return the statements that create them where they are missing."""
        d = self.dialect
        return (
            f"CREATE TABLE IF NOT EXISTS {self.fence} (\n"
            f"    resource {d.name_type} NOT NULL PRIMARY KEY,\n"
            f"    domain {d.domain_type} NOT NULL,\n"
            f"    exclusive_floor {d.number_type} NOT NULL,\n"
            f"    shared_floor {d.number_type} NOT NULL\n"
            f"){d.table_options}",
            f"CREATE TABLE IF NOT EXISTS {self.once} (\n"
            f"    name {d.name_type} NOT NULL PRIMARY KEY,\n"
            f"    result {d.json_type},\n"
            f"    created_at {d.time_type} NOT NULL DEFAULT CURRENT_TIMESTAMP\n"
            f"){d.table_options}",
        )


def sql_schema(dialect: str, *, prefix: str = "holdfast_") -> str:
    """Return the statements that create the SQL guard's tables, for a migration.

    `dialect` is sqlite, postgresql, mysql or mariadb; `prefix` as given to the guard, a schema
    with a dot may be part of it ("app.holdfast_").
    """
    return ";\n".join((*Tables(find_dialect(dialect), prefix).schema(), ""))
