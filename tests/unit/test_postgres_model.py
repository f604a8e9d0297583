"""The SQL functions restate the rules: random schedules look the same as on the reference."""

from collections.abc import Iterator
from secrets import randbits

import psycopg
import pytest

from holdfast._sync.engines.postgres import PostgresEngine
from holdfast.model import Claim
from holdfast.postgres_record import creation
from holdfast.testing.adapters import EngineAdapter
from holdfast.testing.model import run_model
from holdfast.testing.servers import PostgresServer, need, postgres_program

UNIT = 40.0  # seconds: beside them, what a schedule takes by itself on a slow machine is nothing
TABLES = "holdfast.record, holdfast.holder, holdfast.waiter, holdfast.tombstone, holdfast.folded"


class Adapter(EngineAdapter):
    """An engine some of whose waiters die: the connection that they listen on is gone."""

    can_kill = True

    def __init__(self, engine: PostgresEngine, server: "Server") -> None:
        super().__init__(engine, server.advance, unit=UNIT)
        self._server = server

    def kill(self, claim: Claim) -> None:
        """Give the waiter the number of a client that nobody has locked."""
        self._server.run(
            "UPDATE holdfast.waiter SET client = %s WHERE owner = %s", randbits(62) + 1, claim.owner
        )


# All instants that are stored. Setting them back is as good as waiting. Those of tombstones stay as
# they are: the reference never forgets one, and the server not within minutes.
INSTANTS = {
    "record": ("since", "expires", "soonest", "looked"),
    "holder": ("since", "expires"),
    "waiter": ("since", "until"),
}


class Server:
    """A server, and a connection to look behind the functions."""

    def __init__(self, process: PostgresServer) -> None:
        self.process = process
        self._connection = psycopg.connect(process.url, autocommit=True)
        self._connection.execute(creation("holdfast").encode())

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        for table, columns in INSTANTS.items():
            passed = ", ".join(f"{column} = {column} - {seconds * 1e6:.0f}" for column in columns)
            self.run(f"UPDATE holdfast.{table} SET {passed}")

    def run(self, text: str, *values: object) -> int:
        """Run one statement; return how many rows it was about."""
        return self._connection.execute(text.encode(), values or None).rowcount

    def clear(self) -> None:
        """Forget all locks."""
        self.run(f"TRUNCATE {TABLES}")
        self.run("INSERT INTO holdfast.folded (floor, swept) VALUES (0, '')")

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Give a server of its own."""
    with PostgresServer(need(postgres_program)) as process:
        server = Server(process)
        yield server
        server.close()


@pytest.mark.timeout(600)
def test_the_functions(server: Server) -> None:
    """Holders, queue, tokens and refusals are those of the reference; pushed grants and waiters
    that are gone included."""

    def make() -> Adapter:
        server.clear()
        return Adapter(PostgresEngine(server.process.url, max_ttl=300.0), server)

    run_model(make, examples=40)
