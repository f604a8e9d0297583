"""(Generated from _async/postgres_suite.py by tools/unasync.py: do not edit.) What tests of the PostgreSQL engine stand on: ways to look at the server itself."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import holdfast
from holdfast._concurrency import sleep
from holdfast.names import encode, record_key
from holdfast.testing._sync.conformance.base import Base
from holdfast.testing.postgres_harness import PostgresHarness
from holdfast.testing.servers import PostgresServer, Proxy

OURS = "datname = 'postgres' AND application_name = 'holdfast'"


class PostgresSuite(Base):
    """A test, its clients, and the one server behind its proxy."""

    harness: ClassVar[PostgresHarness]

    def conduct(self, test: Callable[..., None], **arguments: Any) -> None:
        """Run one test, and heal whatever it did to the network."""
        try:
            super().conduct(test, **arguments)
        finally:
            self.proxy.heal()

    @property
    def server(self) -> PostgresServer:
        """The server itself."""
        return self.harness.server

    @property
    def proxy(self) -> Proxy:
        """What stands between it and the clients."""
        return self.harness.proxy

    def reach(self, where: object, **options: Any) -> holdfast.Client:
        """Return one more client, of whatever `where` names, closed at the end of the test."""
        client = holdfast.connect(where, **{"namespace": self.namespace, **options})
        self._clients.append(client)
        return client

    def cycle(self, client: holdfast.Client, name: str = "x") -> int:
        """Acquire and release once; return the token."""
        lease = self.take(client.lock(name))
        assert lease.held
        assert lease.release() is True
        return lease.token

    def warm_up(self, client: holdfast.Client) -> None:
        """Use every verb twice: connections are made, and all statements are prepared.

        Once before, because the first renewal keeps the connection of the first claim.
        """
        for _ in range(3):
            lease = self.take(client.lock("warm"))
            lease.extend()
            client.inspect("warm")
            assert client.force_release("warm", token=1) == 0
            assert lease.release() is True

    def hand_over(self, client: holdfast.Client, name: str = "x") -> None:
        """Let one task or thread wait for another: the lock is handed over by push."""
        first = self.take(client.lock(name))
        waiter = self.queue(client, client.lock(name))
        assert first.release() is True
        second = waiter.result()
        assert second.token > first.token
        assert second.release() is True

    # --- Looking at the server. ---

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement on the server, past the proxy."""
        return self.harness.sql(text, *values)

    def requests(self) -> int:
        """Return how many requests have gone through the proxy."""
        self.proxy.delay(0)  # it obeys when it has counted what it has forwarded
        return self.proxy.requests

    def key(self, name: str) -> str:
        """Return the key of a record."""
        return record_key(self.namespace, encode(name))

    def floor(self, name: str) -> int:
        """Return the highest token that the server remembers of a name."""
        rows = self.sql("SELECT floor FROM holdfast.record WHERE key = %s", self.key(name))
        return int(rows[0][0])

    def holders(self, name: str) -> list[str]:
        """Return who holds, or has held and is not yet removed."""
        rows = self.sql(
            "SELECT owner FROM holdfast.record WHERE key = %s AND owner IS NOT NULL "
            "UNION ALL SELECT owner FROM holdfast.holder WHERE key = %s",
            self.key(name),
            self.key(name),
        )
        return [owner for (owner,) in rows]

    def waiting(self, name: str) -> int:
        """Return how many wait."""
        rows = self.sql("SELECT count(*) FROM holdfast.waiter WHERE key = %s", self.key(name))
        return int(rows[0][0])

    def links(self, listening: bool = False) -> set[int]:
        """Return the processes that serve our connections: those that listen, or the others."""
        shape = "query LIKE '%%LISTEN%%'" if listening else "query NOT LIKE '%%LISTEN%%'"
        rows = self.sql(f"SELECT pid FROM pg_stat_activity WHERE {OURS} AND {shape}")
        return {pid for (pid,) in rows}

    def terminate(self, listening: bool = False) -> int:
        """End our connections of one kind; return how many."""
        pids = self.links(listening)
        for pid in pids:
            self.sql("SELECT pg_terminate_backend(%s)", pid)
        return len(pids)

    def until_so(self, condition: Callable[[], object]) -> None:
        """Return when the condition, which does not wait, is true; it must become so."""
        end = time.monotonic() + self.harness.patience
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            sleep(0.02)

    def until_free(self, name: str) -> None:
        """Return when the server says that nobody holds or waits, asked without our link."""
        self.until_so(lambda: not self.holders(name))
        assert self.waiting(name) == 0
