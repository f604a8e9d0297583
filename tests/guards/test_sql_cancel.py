"""Whoever is cancelled or interrupted inside a guarded transaction leaves none open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any

import aiomysql  # type: ignore[import-untyped]
import psycopg
import pytest

from holdfast._concurrency import asleep
from holdfast.aio.guards import SQLGuard
from holdfast.events import Event
from holdfast.fencing import Fence
from holdfast.guards import SQLGuard as BlockingSQLGuard
from holdfast.testing.servers import Proxy

from .fences import DOMAIN
from .sql_databases import PLACES, WAYS, AsyncDatabase, Database
from .sql_places import PATIENCE, Place, place, stop_places_at_the_end

pytestmark = pytest.mark.slow

SELDOM = 0.2  # MariaDB does not bring its table of transactions up to date if asked more often
LATE = 0.5  # seconds that replies take, where something is to happen meanwhile


@pytest.fixture(autouse=True)
def _end(request: pytest.FixtureRequest) -> None:
    stop_places_at_the_end(request.session)


@pytest.fixture
def resource() -> str:
    """Return a name that no other test has."""
    return f"orders/{token_hex(6)}"


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test on an event loop of its own, within bounds."""

    async def limited() -> None:
        async with asyncio.timeout(3 * PATIENCE):
            await test()

    asyncio.run(limited())


@asynccontextmanager
async def connected(way: str) -> AsyncIterator[tuple[AsyncDatabase, SQLGuard, list[Event]]]:
    """Give a connection, a guard on it, and what that says."""
    database = AsyncDatabase(way)
    await database.open()
    guard, heard = SQLGuard(database.connection), list[Event]()
    guard.listen(heard.append)
    try:
        yield database, guard, heard
    finally:
        await database.close()


async def prove_free(way: str, resource: str, value: int) -> None:
    """Nothing of the cancelled one is left: not its work, not its token, not its lock."""
    where = place(way.partition("-")[0])
    assert where.value(resource) == value
    async with connected(way) as (_, guard, _), asyncio.timeout(PATIENCE):
        async with guard.transaction(resource, Fence(1, DOMAIN)):
            pass
    assert where.floors(resource) == [(DOMAIN, 1, 0)]


async def until(condition: Callable[[], object], interval: float = 0.005) -> None:
    """Return when the condition is true; it must become so."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asleep(interval)


@pytest.mark.parametrize("way", WAYS)
def test_cancelled_in_the_body(way: str, resource: str) -> None:
    """Work and token are rolled back, and the connection serves on."""

    async def test() -> None:
        async with connected(way) as (database, guard, heard):
            database.place.look(f"INSERT INTO work VALUES ('{resource}', 0)")
            inside = asyncio.Event()

            async def work() -> None:
                async with guard.transaction(resource, Fence(9, DOMAIN)):
                    await database.run(f"UPDATE work SET value = 9 WHERE name = '{resource}'")
                    inside.set()
                    await asyncio.sleep(PATIENCE)

            task = asyncio.create_task(work())
            await inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not heard
            await prove_free(way, resource, 0)
            async with guard.transaction(resource, Fence(2, DOMAIN)):
                pass

    run(test)


@pytest.mark.parametrize("way", WAYS)
def test_cancelled_while_it_waits_to_enter(way: str, resource: str) -> None:
    """Whoever waits for another's transaction and is cancelled has taken no place."""

    async def test() -> None:
        async with connected(way) as (_, first, _), connected(way) as (database, second, heard):
            database.place.look(f"INSERT INTO work VALUES ('{resource}', 0)")

            async def enter() -> None:
                async with second.transaction(resource, Fence(9, DOMAIN)):
                    raise AssertionError("was let in")

            async with first.transaction(resource, Fence(1, DOMAIN)):
                task = asyncio.create_task(enter())
                await until(database.place.blocked)
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not heard
            await prove_free(way, resource, 0)

    run(test)


@asynccontextmanager
async def behind(proxy: Proxy, where: Place) -> AsyncIterator[Any]:
    """Give a connection that goes through the proxy."""
    if where.dialect == "postgresql":
        connection = await psycopg.AsyncConnection.connect(
            f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
        )
    else:
        connection = await aiomysql.connect(
            host="127.0.0.1", port=proxy.port, user="root", db="test"
        )
    try:
        yield connection
    finally:
        closed = connection.close()
        if closed is not None:
            await closed


def open_transactions(where: Place) -> list[Any]:
    """Return who stands idle in a transaction."""
    if where.dialect == "postgresql":
        return where.look(
            "SELECT pid FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        )
    return where.look("SELECT 1 FROM information_schema.innodb_trx WHERE trx_mysql_thread_id > 0")


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_cancelled_in_the_commit(name: str, resource: str) -> None:
    """The outcome is unknown, so nobody is told Accepted; no transaction stays open."""
    where = place(name)
    where.look(f"INSERT INTO work VALUES ('{resource}', 0)")

    async def test() -> None:
        heard: list[Event] = []
        with Proxy(where.port) as proxy:
            async with behind(proxy, where) as connection:
                guard = SQLGuard(connection)
                guard.listen(heard.append)

                async def work() -> None:
                    async with guard.transaction(resource, Fence(1, DOMAIN)):
                        async with connection.cursor() as cursor:
                            await cursor.execute(
                                f"UPDATE work SET value = 9 WHERE name = '{resource}'"
                            )
                        proxy.drop_replies()

                task = asyncio.create_task(work())
                await until(lambda: where.value(resource) == 9)
                task.cancel()
                await asleep(0.02)
                proxy.heal()  # which ends the connection: psycopg waits for it
                with pytest.raises((asyncio.CancelledError, psycopg.OperationalError)):
                    await task
                assert not heard
                await until(lambda: not open_transactions(where), SELDOM)
        await prove_free(name, resource, 9)

    run(test)


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_cancelled_again_while_it_rolls_back(name: str, resource: str) -> None:
    """Impatience does not leave a transaction open either."""
    where = place(name)
    where.look(f"INSERT INTO work VALUES ('{resource}', 0)")

    async def test() -> None:
        with Proxy(where.port) as proxy:
            async with behind(proxy, where) as connection:
                guard = SQLGuard(connection)
                inside = asyncio.Event()

                async def work() -> None:
                    async with guard.transaction(resource, Fence(9, DOMAIN)):
                        async with connection.cursor() as cursor:
                            await cursor.execute(
                                f"UPDATE work SET value = 9 WHERE name = '{resource}'"
                            )
                        proxy.delay(LATE)
                        inside.set()
                        await asyncio.sleep(PATIENCE)

                task = asyncio.create_task(work())
                await inside.wait()
                for _ in range(3):
                    task.cancel()
                    await asyncio.sleep(0.02)
                with pytest.raises(asyncio.CancelledError):
                    await task
                proxy.delay(0)
                await until(lambda: not open_transactions(where), SELDOM)
        await prove_free(name, resource, 0)

    run(test)


@pytest.mark.parametrize("way", [*PLACES, *(f"{name}-session" for name in PLACES)])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_interrupted_in_the_body(way: str, error: type[BaseException], resource: str) -> None:
    """What ends a program rolls back too, also inside `once`."""
    database = Database(way)
    database.open()
    with contextlib.closing(database):
        where, guard = database.place, BlockingSQLGuard(database.connection)
        where.look(f"INSERT INTO work VALUES ('{resource}', 0)")

        def work() -> None:
            database.run(f"UPDATE work SET value = 9 WHERE name = '{resource}'")
            raise error

        with pytest.raises(error), guard.transaction(resource, Fence(9, DOMAIN)):
            work()
        with pytest.raises(error):
            guard.once(resource, work)
        with pytest.raises(error), guard.transaction(resource, Fence(9, DOMAIN)):
            guard.once(resource, work)
        assert where.value(resource) == 0
        assert not where.floors(resource)
        with guard.transaction(resource, Fence(1, DOMAIN)):
            assert guard.once(resource, lambda: 7) == 7
