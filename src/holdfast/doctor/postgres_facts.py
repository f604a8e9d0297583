"""What a PostgreSQL server says of itself when the doctor asks, on a connection of its own.

Not the engine's: that would make the tables which the doctor is to look for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from ..errors import EngineUnavailable
from ..postgres_link import Settings

PATIENCE = 5  # seconds for a connection; libpq counts in whole ones
LOOKS = 8  # at a clock; the quickest answer counts
CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"
SETTINGS = (
    *("server_version_num", "server_version", "fsync", "full_page_writes", "synchronous_commit"),
    *(
        "synchronous_standby_names",
        "autovacuum",
        "max_connections",
        "superuser_reserved_connections",
    ),
    "default_transaction_isolation",
)

# Of the database's default isolation only a session that says nothing itself can tell.
QUESTIONS = {
    "settings": f"SELECT name, setting FROM pg_settings WHERE name IN {SETTINGS!r}",
    "standbys": "SELECT application_name, sync_state FROM pg_stat_replication",
    "sessions": "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
    "idle": """
        SELECT pid, usename, application_name, extract(epoch FROM clock_timestamp() - state_change)
        FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'
        AND clock_timestamp() - state_change > interval '10 s' ORDER BY state_change""",
    "oldest": """
        SELECT pid, usename, application_name, extract(epoch FROM clock_timestamp() - xact_start)
        FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
        AND xact_start < clock_timestamp() - interval '5 min' ORDER BY xact_start LIMIT 1""",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a server; what it may not say is missing."""

    location: str
    settings: dict[str, str]
    standbys: list[tuple[Any, ...]]
    sessions: int
    idle: list[tuple[Any, ...]]
    oldest: list[tuple[Any, ...]]
    pooled: bool
    standby: bool

    @property
    def version(self) -> int:
        """The version as a number: 150018 is 15.18."""
        return int(self.settings.get("server_version_num", "0"))


Connection = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def connected(settings: Settings, *, bare: bool = False) -> Iterator[Connection]:
    """Give a connection as the engine makes them; `bare` without what it asks of its sessions."""
    parameters: dict[str, Any] = dict(settings.parameters)
    if bare:
        parameters.pop("options", None)
    try:
        connection = psycopg.connect(
            **parameters,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=PATIENCE,
            row_factory=tuple_row,
        )
    except psycopg.Error as error:
        if not bare and "unsupported startup parameter" in str(error):  # PgBouncer
            with connected(settings, bare=True) as other:
                yield other
            return
        why = " ".join(str(error).split())
        raise EngineUnavailable(
            f"{settings.location} cannot be reached ({why}).", engine=settings.location
        ) from None
    try:
        yield connection
    except psycopg.Error as error:
        why = " ".join(str(error).split())
        raise EngineUnavailable(
            f"{settings.location} refused: {why}.", engine=settings.location
        ) from None
    finally:
        connection.close()


def rows(connection: Connection, text: str, *values: object) -> list[tuple[Any, ...]]:
    """Return what a question gives."""
    return connection.execute(text.encode(), values or None).fetchall()


def ask(settings: Settings) -> Facts:
    """Ask a server that answers."""
    with connected(settings, bare=True) as connection:
        found = {name: rows(connection, text) for name, text in QUESTIONS.items()}
        ((pid, standby),) = rows(connection, "SELECT pg_backend_pid(), pg_is_in_recovery()")
        return Facts(
            location=settings.location,
            settings={str(name): str(value) for name, value in found["settings"]},
            standbys=found["standbys"],
            sessions=int(found["sessions"][0][0]),
            idle=found["idle"],
            oldest=found["oldest"],
            pooled=pid != connection.pgconn.backend_pid,
            standby=bool(standby),
        )


def read_clock(connection: Connection) -> tuple[float, float]:
    """Return how far the server's clock is ahead of ours, and by how much that may be wrong."""
    readings = []
    for _ in range(LOOKS):
        sent = time.time()
        ((theirs,),) = rows(connection, CLOCK)
        received = time.time()
        readings.append((theirs - (sent + received) / 2, abs(received - sent) / 2))
    return min(readings, key=lambda reading: reading[1])
