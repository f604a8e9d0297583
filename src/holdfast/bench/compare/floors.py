"""The bare floor of each engine as a contestant: the least that a lock could cost there.

None of them waits, renews, or hands over.
"""

from __future__ import annotations

from typing import Any

from ..contestant import FLOOR, Contestant
from ..handle import Handle


class _Floor(Contestant):
    role = FLOOR
    waits = False
    lacks = "no waiting, no renewal"


class MemoryFloor(_Floor):
    """A lock table by hand."""

    name = "hand-written table"
    per_process = True

    def open(self) -> None:
        """Make a table."""
        from ..memory_floor import HandTable

        self._table = HandTable()

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        held: list[Any] = []
        return Handle(
            lambda: held.append(self._table.acquire(key)),
            lambda: held.pop().release(),
        )


class SqliteFloor(_Floor):
    """An upsert and an update, on a connection of its own."""

    name = "two bare statements"

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        from ..sqlite_floor import bare_lock

        return bare_lock(self.stack, self.place.folder, key)


class RedisFloor(_Floor):
    """Two scripts on plain sockets, to all servers at once."""

    name = "two bare scripts"

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        from ..bare_scripts import bare_lock

        return bare_lock(self.stack, self.place.addresses, key)


class ZooKeeperFloor(_Floor):
    """A create and a delete through kazoo."""

    name = "bare create + delete"

    def open(self) -> None:
        """Start a session."""
        from ..peers.zookeeper_ones import kazoo_client

        self._client = kazoo_client(self.stack, ",".join(self.place.addresses), self.ttl)

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        from ..zookeeper_floor import bare_lock

        return bare_lock(self._client, key)


class EtcdFloor(_Floor):
    """Two transactions through grpcio."""

    name = "two bare transactions"

    def open(self) -> None:
        """Connect, and take a lease."""
        from ..etcd_floor import Bare

        self._bare = Bare(self.stack, self.place.addresses[0])

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        return self._bare.lock(key)


class PostgresFloor(_Floor):
    """Two updates through psycopg, on a connection of its own."""

    name = "two bare updates"

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        import psycopg

        from ..postgres_floor import CREATE, bare_lock

        connection = psycopg.connect(self.place.url, autocommit=True)
        self.stack.callback(connection.close)
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(1)")  # two may want to create it
            connection.execute(CREATE)
        return bare_lock(connection, key)


class DynamoDBFloor(_Floor):
    """Two conditional updates through boto3."""

    name = "two bare conditional updates"

    def open(self) -> None:
        """Make a client, and be sure of the table."""
        from ... import connect
        from ..peers.dynamodb_ones import boto_client

        with connect(self.place.url) as ours:
            ours.inspect("bare")  # it creates the table
        self._client = boto_client(self.stack, self.place.addresses[0])

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        from ...testing.dynamodb_harness import TABLE
        from ..dynamodb_floor import bare_lock

        return bare_lock(self._client, TABLE, key)


FLOORS: dict[str, type[Contestant]] = {
    "memory": MemoryFloor,
    "sqlite": SqliteFloor,
    "redis": RedisFloor,
    "valkey": RedisFloor,
    "redlock": RedisFloor,
    "zookeeper": ZooKeeperFloor,
    "etcd": EtcdFloor,
    "postgresql": PostgresFloor,
    "dynamodb": DynamoDBFloor,
}
