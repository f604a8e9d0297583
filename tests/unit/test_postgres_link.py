"""The link to PostgreSQL: where it leads, how it waits, and what it says when it fails."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import psycopg_pool
import pytest

import holdfast
from holdfast import aio
from holdfast.errors import EngineUnavailable, OutcomeUnknown
from holdfast.postgres_link import (
    AsyncTurns,
    Refusal,
    Session,
    Settings,
    Statement,
    Turns,
    addresses,
    drive,
    from_driver,
    from_url,
    refused,
    resolve,
    suspect,
)
from holdfast.postgres_link.settings import OPTIONS, needs_lookup
from holdfast.postgres_record import creation, quoted, statements
from holdfast.testing.servers import PostgresServer, need, postgres_program

PATIENCE = 20.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One server for all tests here."""
    with PostgresServer(need(postgres_program)) as server:
        yield server


# --- Where it leads. ---


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("postgresql://host/db", "postgresql://host:5432/db"),
        ("postgres://u:geheim@host:5433/db", "postgresql://host:5433/db"),
        ("postgresql://a:1,b:2/db?sslmode=require", "postgresql://a:1,b:2/db"),
        ("postgresql://[::1]:5433/db", "postgresql://[::1]:5433/db"),
        ("postgresql:///db?host=/run/pg", "postgresql:///db?host=/run/pg&port=5432"),
        ("postgresql://", "postgresql:///"),
        ("postgresql://u@host/db?password=geheim", "postgresql://host:5432/db"),
    ],
)
def test_urls(url: str, location: str) -> None:
    """Whatever libpq understands; where it leads is shown without a password."""
    settings = from_url(url)
    assert settings.location == location
    assert "geheim" not in repr(settings)
    assert settings.parameters["target_session_attrs"] == "read-write"


@pytest.mark.parametrize(
    "url", ["postgresql://u:geheim@host/db?nonsense=1", "postgresql://u:geheim@host:port/db"]
)
def test_urls_that_mean_nothing(url: str) -> None:
    """They are refused in one sentence without the password."""
    with pytest.raises(ValueError, match="postgresql://") as caught:
        holdfast.connect(url)
    assert "geheim" not in str(caught.value)


def test_what_the_user_says_wins() -> None:
    """Options in the URL come after ours, and survive those that are holdfast's own."""
    url = "postgresql://h/db?options=-c%20work_mem%3D1MB&schema=locks&target_session_attrs=any"
    client = holdfast.connect(url, connections=2)
    node: Any = vars(client.engine)["node"]
    assert node.statements.schema == "locks"
    options = node.settings.parameters["options"]
    assert options.endswith("-c work_mem=1MB")
    assert all(name in options for name in OPTIONS)
    assert node.settings.parameters["target_session_attrs"] == "any"


@pytest.mark.parametrize(
    "options", [{"listen": "perhaps"}, {"connections": 0}, {"schema": ""}, {"schema": "x" * 64}]
)
def test_options_that_mean_nothing(options: dict[str, Any]) -> None:
    """They are refused in one sentence that names them."""
    with pytest.raises(ValueError, match=next(iter(options))):
        holdfast.connect("postgresql://h/db", **options)


def test_promises_are_known_without_a_server() -> None:
    """Who never listens is promised no push, before anything is connected."""
    assert holdfast.connect("postgresql://h/db").guarantees.push
    assert not holdfast.connect("postgresql://h/db?listen=no").guarantees.push


def test_hosts_one_by_one() -> None:
    """Each host of a URL has its own port, or all have the same."""
    found = addresses(from_url("postgresql://a:1,b:2/db").parameters)
    assert [(one.host, one.port) for one in found] == [("a", "1"), ("b", "2")]
    assert all("," not in one.parameters["host"] for one in found)
    same = addresses(from_url("postgresql://a,b/db?port=7").parameters)
    assert [one.port for one in same] == ["7", "7"]


def test_names_are_looked_up_and_numbers_are_not() -> None:
    """Only a name has to be asked for; it stays, since certificates name it."""
    (name,) = addresses(from_url("postgresql://localhost:5432/db").parameters)
    assert needs_lookup(name)
    found = resolve(name)
    assert {one["hostaddr"] for one in found} <= {"127.0.0.1", "::1"}
    assert all(one["host"] == "localhost" for one in found)
    for url in ("postgresql://127.0.0.1/db", "postgresql:///db?host=/run", "postgresql:///db"):
        (number,) = addresses(from_url(url).parameters)
        assert not needs_lookup(number)
        assert resolve(number) == [number.parameters]


def test_objects_of_psycopg(server: PostgresServer) -> None:
    """A connection, its info, a pool: each lends its settings; its connections stay its own."""
    with psycopg.connect(server.url) as connection:
        things: list[Any] = [connection, connection.info]
        pool = psycopg_pool.ConnectionPool(
            server.url, kwargs={"autocommit": True, "application_name": "mine"}, open=False
        )
        things.append(pool)
        for thing in things:
            with holdfast.connect(thing) as client:
                assert client.engine.location == f"postgresql://127.0.0.1:{server.port}/postgres"
                lease = client.lock("x").acquire(timeout=PATIENCE)
                assert lease is not None
                assert lease.release() is True
        assert from_driver(pool).parameters["application_name"] == "mine"
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_async_pool(server: PostgresServer) -> None:
    """The awaitable client takes an awaitable pool."""

    async def main() -> None:
        pool = psycopg_pool.AsyncConnectionPool(server.url, open=False)
        async with aio.connect(pool) as client:
            async with client.lock("y", timeout=PATIENCE) as lease:
                assert lease.held

    asyncio.run(main())


def test_things_that_name_no_server() -> None:
    """They are refused in one sentence."""
    with pytest.raises(holdfast.NotSupported, match="does not name a server"):
        holdfast.connect(psycopg.adapt.AdaptersMap())
    with pytest.raises(TypeError, match="psycopg"):
        holdfast.connect(object())


# --- How it waits. ---


def test_nothing_is_waited_for_longer_than_said(server: PostgresServer) -> None:
    """A statement that takes long is given up in time, and so is a server that says nothing."""
    session = Session(from_url(server.url).parameters)
    drive(session, session.opening(), PATIENCE)
    slow = Statement(b"slow", b"SELECT pg_sleep(60)")
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        drive(session, session.asking(slow, [], True), 0.2)
    assert 0.19 < time.monotonic() - started < 10
    session.close()
    server.pause()
    try:
        with holdfast.connect(server.url, connect_timeout=0.3) as client:
            with pytest.raises(EngineUnavailable, match="cannot be reached"):
                client.ping()
    finally:
        server.resume()


def test_statements_are_prepared_when_used_again(server: PostgresServer) -> None:
    """The first time costs one request, and so does each from the third on."""
    session = Session(from_url(server.url).parameters)
    drive(session, session.opening(), PATIENCE)
    one = Statement(b"one", b"SELECT $1::int + 1")
    prepared = Statement(b"p", b"SELECT count(*) FROM pg_prepared_statements")
    for count in (b"0", b"1", b"1"):
        assert drive(session, session.asking(one, [b"41"], True), PATIENCE) == [[b"42"]]
        assert drive(session, session.asking(prepared, [], False), PATIENCE) == [[count]]
    with pytest.raises(Refusal) as caught:
        drive(session, session.asking(one, [b"x"], True), PATIENCE)
    assert caught.value.state == "22P02"
    assert drive(session, session.asking(one, [b"1"], True), PATIENCE) == [[b"2"]]
    session.close()


def test_turns_of_threads() -> None:
    """So many at once; who gives up in time gets none."""
    turns = Turns(2)
    assert turns.take(0)
    assert turns.take(0)
    assert not turns.take(0.05)
    threading.Timer(0.05, turns.give).start()
    assert turns.take(PATIENCE)


def test_turns_of_tasks() -> None:
    """First come, first served; a task that is cancelled or gives up takes no turn with it."""

    async def main() -> None:
        turns = AsyncTurns(1)
        order: list[int] = []

        async def work(number: int) -> None:
            assert await turns.take(PATIENCE)
            order.append(number)
            await asyncio.sleep(0)
            turns.give()

        assert await turns.take(0)
        assert not await turns.take(0.01)
        tasks = [asyncio.create_task(work(number)) for number in range(5)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        tasks.append(asyncio.create_task(work(5)))
        await asyncio.sleep(0)
        turns.give()
        tasks[2].cancel()  # perhaps just when it was its turn
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == [0, 3, 4, 5]
        assert await turns.take(0), "no turn was lost"

    asyncio.run(main())


# --- What it says when it fails. ---


@pytest.mark.parametrize(
    ("state", "kind", "word", "useless"),
    [
        ("42501", EngineUnavailable, "rights", False),
        ("25006", EngineUnavailable, "standby", True),
        ("53300", EngineUnavailable, "max_connections", False),
        ("55P03", EngineUnavailable, "idle in transaction", False),
        ("42883", EngineUnavailable, "holdfast doctor --fix", True),
        ("XX000", EngineUnavailable, "XX000", False),
        ("57P01", OutcomeUnknown, "no answer", True),
        ("08006", OutcomeUnknown, "no answer", True),
    ],
)
def test_refusals(state: str, kind: type[Exception], word: str, useless: bool) -> None:
    """Each is one sentence that says what to do; some say that the connection is of no more use."""
    settings = Settings("postgresql://there:5432/db", {})
    refusal = Refusal(state, "what the server says")
    error = refused(settings, refusal)
    assert type(error) is kind
    assert word in str(error)
    assert "there:5432" in str(error)
    assert suspect(refusal) is useless


# --- SQL. ---


def test_scripts_are_for_one_schema() -> None:
    """Another schema is named wherever ours stood, and ours nowhere."""
    text = creation("Other")
    assert 'CREATE SCHEMA IF NOT EXISTS "Other";' in text
    assert "holdfast." not in text
    assert '"Other".record' in text
    assert "'holdfast:'" in text, "channels are the same in all schemas"
    assert creation("holdfast").count("holdfast.") == text.count('"Other".')


def test_names_are_quoted() -> None:
    """Whatever a schema is called, SQL cannot be hidden in it."""
    assert quoted("locks_2") == "locks_2"
    assert quoted('a"; DROP SCHEMA x') == '"a""; DROP SCHEMA x"'
    assert statements('a"b').claim.text.startswith(b'SELECT * FROM "a""b".claim($1')
