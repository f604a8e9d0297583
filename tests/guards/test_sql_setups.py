"""What is special about one database, driver or setting: the SQL guard keeps its promise there."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace
from typing import Any

import psycopg
import pymysql  # type: ignore[import-untyped]
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from pymysql.constants import CLIENT  # type: ignore[import-untyped]
from pymysql.cursors import DictCursor  # type: ignore[import-untyped]
from sqlalchemy import event
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from holdfast.errors import NotSupported, StaleToken
from holdfast.events import Accepted, Event
from holdfast.guards import Fence, Row, SQLGuard, sql_schema
from holdfast.guards.sql_drivers import find_driver
from holdfast.model import Mode
from holdfast.testing.running import Spawned
from holdfast.testing.servers import Proxy

from .fences import DOMAIN
from .sql_databases import PLACES, AsyncSQLGuard, Database
from .sql_places import PATIENCE, Place, SQLitePlace, place, stop_places_at_the_end

HOLDER = Path(__file__).with_name("sql_holder.py")


@pytest.fixture(autouse=True)
def _end(request: pytest.FixtureRequest) -> None:
    stop_places_at_the_end(request.session)


@pytest.fixture
def resource() -> str:
    """Return a name that no other test has."""
    return f"orders/{token_hex(6)}"


def fence(token: int, mode: Mode = Mode.EXCLUSIVE) -> Fence:
    return Fence(token, DOMAIN, mode)


def sqlite_path() -> str:
    where = place("sqlite")
    assert isinstance(where, SQLitePlace)
    return where.path


def mariadb(**options: Any) -> Any:
    where = place("mariadb")
    options = {"host": "127.0.0.1", "user": "root", "database": "test", **options}
    return pymysql.connect(**{"port": where.port, **options})


def postgres(**options: Any) -> Any:
    return psycopg.connect(
        host="127.0.0.1", port=place("postgresql").port, user="postgres", **options
    )


def prove(connection: Any, resource: str) -> None:
    """A guard on this connection lets in, keeps out, counts floors, and does work once."""
    guard = SQLGuard(connection)
    heard: list[Event] = []
    guard.listen(heard.append)
    for token, mode in (
        (5, Mode.SHARED),
        (4, Mode.SHARED),
        (6, Mode.EXCLUSIVE),
        (6, Mode.EXCLUSIVE),
    ):
        with guard.transaction(resource, fence(token, mode)):
            pass
    assert [one.seen for one in heard if isinstance(one, Accepted)] == [5, 5, 6, 6]
    for mode in Mode:
        with pytest.raises(StaleToken), guard.transaction(resource, fence(5, mode)):
            raise AssertionError("was let in")
    for _ in range(2):
        assert guard.once(resource, lambda: resource) == resource


# --- Settings of a connection. ---

CONNECTIONS: dict[str, Callable[[], Any]] = {
    "sqlite3 rows": lambda: _with(sqlite3.connect(sqlite_path()), row_factory=sqlite3.Row),
    "sqlite3 dictionaries": lambda: _with(
        sqlite3.connect(sqlite_path()), row_factory=lambda cursor, row: {"one": row[0]}
    ),
    "sqlite3 deferred": lambda: sqlite3.connect(sqlite_path(), isolation_level="DEFERRED"),
    "psycopg dictionaries": lambda: postgres(row_factory=dict_row),
    "psycopg repeatable read": lambda: _with(
        postgres(), isolation_level=psycopg.IsolationLevel.REPEATABLE_READ
    ),
    "psycopg serializable": lambda: _with(
        postgres(), isolation_level=psycopg.IsolationLevel.SERIALIZABLE
    ),
    "pymysql dictionaries": lambda: mariadb(cursorclass=DictCursor),
    "pymysql counts rows found": lambda: mariadb(client_flag=CLIENT.FOUND_ROWS),
    "pymysql counts rows found, autocommit": lambda: mariadb(
        client_flag=CLIENT.FOUND_ROWS, autocommit=True
    ),
    "pymysql latin1": lambda: mariadb(charset="latin1"),
    "pymysql read committed": lambda: mariadb(
        init_command="SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
    ),
    "pymysql strict": lambda: mariadb(sql_mode="ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES"),
}


def _with(connection: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(connection, name, value)
    return connection


@pytest.mark.parametrize("kind", CONNECTIONS)
def test_settings_of_a_connection(kind: str, resource: str) -> None:
    """Rows as dictionaries, counts, charsets, isolation: nothing of it changes who is let in."""
    with closing(CONNECTIONS[kind]()) as connection:
        prove(connection, f"{resource}/ü \U0001f512")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has autocommit since Python 3.12")
@pytest.mark.parametrize("autocommit", [False, True])
def test_both_new_modes_of_sqlite3(autocommit: bool, resource: str) -> None:
    """With autocommit=False a transaction is always open; with True commit() does nothing."""
    options: dict[str, Any] = {"autocommit": autocommit}
    with closing(sqlite3.connect(sqlite_path(), **options)) as connection:
        prove(connection, resource)
        guard = SQLGuard(connection)
        row = Row("stock", {"name": resource}, domain=DOMAIN)
        place("sqlite").look(f"INSERT INTO stock (name, leftover) VALUES ('{resource}', 10)")
        assert guard.update(row, fence(1), "leftover = leftover - 1") is True
        with pytest.raises(ZeroDivisionError), guard.transaction(row, fence(2)):
            connection.execute("UPDATE stock SET leftover = 0")
            raise ZeroDivisionError
    assert place("sqlite").look(f"SELECT leftover, fence FROM stock WHERE name = '{resource}'") == [
        (9, 1)
    ]


@pytest.fixture(params=PLACES)
def engine(request: pytest.FixtureRequest) -> Iterator[sqlalchemy.Engine]:
    """Give an engine of SQLAlchemy per database."""
    with closing(Database(f"{request.param}-connection")) as database:
        database.open()
        yield database._engine


def test_sqlalchemy_autocommit(engine: sqlalchemy.Engine, resource: str) -> None:
    """Where SQLAlchemy begins nothing, the guard does."""
    alone = engine.execution_options(isolation_level="AUTOCOMMIT")
    with alone.connect() as connection:
        prove(connection, resource)
    with Session(alone) as session:
        prove(session, f"{resource}/2")


def test_sqlalchemy_scoped_session(engine: sqlalchemy.Engine, resource: str) -> None:
    """A registry of sessions is used like the session of this thread."""
    sessions = scoped_session(sessionmaker(engine))
    try:
        prove(sessions, resource)
    finally:
        sessions.remove()


def test_sqlalchemy_own_begin(resource: str) -> None:
    """The recipe by which SQLAlchemy itself sends BEGIN to SQLite does not disturb the guard."""
    engine = sqlalchemy.create_engine(f"sqlite:///{sqlite_path()}")

    @event.listens_for(engine, "connect")
    def leave_it_alone(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    try:
        with engine.connect() as connection:
            prove(connection, resource)
    finally:
        engine.dispose()


def test_sqlalchemy_session_begun_by_its_user(engine: sqlalchemy.Engine, resource: str) -> None:
    """`check` is the first statement inside Session.begin(), which commits, or rolls back."""
    with Session(engine) as session:
        guard = SQLGuard(session)
        with session.begin():
            guard.check(resource, fence(2))
        with pytest.raises(StaleToken), session.begin():
            guard.check(resource, fence(1))
        with pytest.raises(RuntimeError, match="has a transaction open already"), session.begin():
            with guard.transaction(resource, fence(3)):
                raise AssertionError("was let in")
        with guard.transaction(resource, fence(2)):
            pass


# --- What is no connection, and what cannot name anything. ---


def test_what_is_no_connection(engine: sqlalchemy.Engine) -> None:
    """A sentence says what a guard takes."""
    with pytest.raises(TypeError, match=r"does not know builtins\.str"):
        SQLGuard("sqlite:///x.db")
    with pytest.raises(TypeError, match="a connection or a session of SQLAlchemy, not Engine"):
        SQLGuard(engine)
    with pytest.raises(ValueError, match="There is no dialect 'oracle'"):
        SQLGuard(object(), dialect="oracle")
    with closing(sqlite3.connect(":memory:")) as connection:
        with pytest.raises(TypeError, match=r"blocks: use SQLGuard of holdfast\.guards"):
            AsyncSQLGuard(connection)
    with pytest.raises(TypeError, match=r"must be awaited: use SQLGuard of holdfast\.aio\.guards"):
        SQLGuard(psycopg.AsyncConnection.__new__(psycopg.AsyncConnection))


STATES = [
    ("psycopg2.extensions", {"info": SimpleNamespace(transaction_status=0)}, (False, False, True)),
    ("psycopg2.extensions", {"info": SimpleNamespace(transaction_status=3)}, (True, True, True)),
    ("pg8000.dbapi", {"_transaction_status": None}, (False, False, True)),
    ("pg8000.dbapi", {"_transaction_status": b"I"}, (False, False, True)),
    ("pg8000.dbapi", {"_transaction_status": b"T"}, (True, False, True)),
    ("pg8000.dbapi", {"_transaction_status": b"E"}, (True, True, True)),
    ("mysql.connector.connection", {"in_transaction": True}, (True, False, None)),
    ("mariadb.connections", {"server_status": 3}, (True, False, True)),
    ("MySQLdb.connections", {"get_autocommit": lambda: False}, (None, False, False)),
    (
        "asyncmy.connection",
        {"get_autocommit": lambda: False, "get_transaction_status": lambda: True},
        (True, False, False),
    ),
]


@pytest.mark.parametrize(("module", "attributes", "state"), STATES)
def test_what_other_drivers_say_of_a_transaction(
    module: str, attributes: dict[str, Any], state: tuple[Any, ...]
) -> None:
    """Drivers that are not installed here are known by their module and read by their flags."""
    connection = type("Connection", (), {"__module__": module})()
    _with(connection, autocommit=True, **attributes)
    assert tuple(find_driver(connection, None).state(connection)) == state


def test_unknown_driver_by_its_dialect(resource: str) -> None:
    """A wrapper that nobody knows works if it is told which dialect it speaks."""

    class Wrapper:
        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

    with closing(mariadb()) as connection:
        with pytest.raises(TypeError, match="or dialect="):
            SQLGuard(Wrapper(connection))
        guard = SQLGuard(Wrapper(connection), dialect="mariadb")
        with guard.transaction(resource, fence(2)):
            pass
        with pytest.raises(StaleToken), guard.transaction(resource, fence(1)):
            raise AssertionError("was let in")


def test_driver_that_does_not_say_whether_it_passed(resource: str) -> None:
    """What is not said is never taken for a yes."""

    class Silent(pymysql.cursors.Cursor):  # type: ignore[misc]
        lastrowid = property(lambda self: None, lambda self, value: None)

    with closing(mariadb(cursorclass=Silent)) as connection:
        with pytest.raises(NotSupported, match="did not say whether it has recorded"):
            with SQLGuard(connection).transaction(resource, fence(1)):
                raise AssertionError("was let in")
        with pytest.raises(NotSupported, match="did not say whether it has recorded"):
            SQLGuard(connection).check(resource, fence(1))
    assert not place("mariadb").floors(resource)


@pytest.mark.parametrize(
    "bad", ["a b", "a;b", 'a"b', "a`b", "a'b", "", "1a", "é", "a" * 64, "a..b"]
)
def test_names_of_tables_and_columns(bad: str) -> None:
    """Nothing gets into a statement by way of a name."""
    with closing(sqlite3.connect(":memory:")) as connection:
        with pytest.raises(ValueError, match="cannot name a table or column"):
            with SQLGuard(connection, prefix=bad + ";").transaction("x", fence(1)):
                raise AssertionError("was let in")
    for arguments in ({"table": bad}, {"column": bad}, {"key": {bad: 1}}, {"domain_column": bad}):
        options: dict[str, Any] = {"table": "t", "key": {"id": 1}, **arguments}
        if "domain_column" not in options:
            options["domain"] = DOMAIN
        with pytest.raises(ValueError, match="cannot name a table or column"):
            Row(**options)


def test_rows_that_say_too_little() -> None:
    """A row needs a key, and one place that says where its tokens come from."""
    with pytest.raises(ValueError, match="needs a key"):
        Row("stock", {}, domain=DOMAIN)
    with pytest.raises(ValueError, match=r"Say where the tokens in stock\.fence come from"):
        Row("stock", {"id": 7})
    with pytest.raises(ValueError, match="one of them"):
        Row("stock", {"id": 7}, domain=DOMAIN, domain_column="origin")
    with pytest.raises(ValueError, match="A domain is"):
        Row("stock", {"id": 7}, domain="")
    same = Row("stock", {"id": 7}, domain=DOMAIN)
    assert {same: 1} == {Row("stock", {"id": 7}, domain=DOMAIN): 1}
    assert same.name == "stock(id=7)"


def test_column_that_is_missing_in_sqlite() -> None:
    """SQLite does not take the name of a missing column for a text, and lets all pass."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE stock (id INTEGER PRIMARY KEY, leftover INTEGER)")
        connection.execute("INSERT INTO stock VALUES (7, 1)")
        connection.commit()
        guard = SQLGuard(connection)
        with pytest.raises(sqlite3.OperationalError, match="no such column: fence"):
            guard.update(Row("stock", {"id": 7}, domain=DOMAIN), fence(1), "leftover = 0")
        with pytest.raises(sqlite3.OperationalError, match="no such column: idd"):
            guard.update(Row("stock", {"idd": 7}, "leftover", domain=DOMAIN), fence(1), "id = 8")
        assert connection.execute("SELECT * FROM stock").fetchall() == [(7, 1)]


def test_tables_in_a_schema(resource: str) -> None:
    """A prefix may name a schema; the statements for a migration name it too."""
    with closing(postgres(autocommit=True)) as connection:
        connection.execute("CREATE SCHEMA apart")
        guard = SQLGuard(connection, prefix="apart.holdfast_")
        with guard.transaction(resource, fence(1)):
            pass
    assert place("postgresql").floors(resource, "apart.holdfast_") == [(DOMAIN, 1, 0)]
    assert '"apart"."holdfast_once"' in sql_schema("postgresql", prefix="apart.holdfast_")
    with pytest.raises(ValueError, match="There is no dialect 'db2'"):
        sql_schema("db2")


# --- Isolation. ---


def test_repeatable_read_sees_what_the_predecessor_wrote(resource: str) -> None:
    """On MariaDB the view of the data is made after the guard has waited, not before."""
    where = place("mariadb")
    where.look(f"INSERT INTO work VALUES ('{resource}', 0)")
    with closing(mariadb()) as first, closing(mariadb()) as second:

        def add(connection: Any, token: int) -> None:
            with SQLGuard(connection).transaction(resource, fence(token)):
                cursor = connection.cursor()
                cursor.execute(f"SELECT value FROM work WHERE name = '{resource}'")
                value = cursor.fetchone()[0] + 1
                cursor.execute(f"UPDATE work SET value = {value} WHERE name = '{resource}'")

        add(first, 1)
        with SQLGuard(first).transaction(resource, fence(2)):
            waiting = Spawned(add, second, 3)
            _until_blocked(where)
            first.cursor().execute(f"UPDATE work SET value = 10 WHERE name = '{resource}'")
        waiting.result()
    assert where.value(resource) == 11


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_strict_isolation_of_postgresql(level: str, resource: str) -> None:
    """Who waited for another is begun again by the guard, since nothing else was done yet."""
    where = place("postgresql")
    where.look(f"INSERT INTO work VALUES ('{resource}', 0)")
    isolation = getattr(psycopg.IsolationLevel, level)
    with closing(postgres()) as first, closing(postgres()) as second:
        first.isolation_level = second.isolation_level = isolation

        def add(connection: Any, token: int) -> None:
            with SQLGuard(connection).transaction(resource, fence(token)):
                connection.execute(f"UPDATE work SET value = value + 1 WHERE name = '{resource}'")

        add(first, 1)
        with SQLGuard(first).transaction(resource, fence(2)):
            waiting = Spawned(add, second, 3)
            _until_blocked(where)
            first.execute(f"UPDATE work SET value = 10 WHERE name = '{resource}'")
        waiting.result()
    assert where.value(resource) == 11


def _until_blocked(where: Place) -> None:
    end = time.monotonic() + PATIENCE
    while not where.blocked():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


# --- What gets lost. ---


def test_deadlock_inside_once(resource: str) -> None:
    """MariaDB then rolls back all, the fence too: who swallows the error can commit nothing."""
    where = place("mariadb")
    for number in range(50):
        where.look(f"INSERT INTO work VALUES ('{resource}/{number}', 0)")
    with closing(mariadb()) as first, closing(mariadb()) as second:
        guard = SQLGuard(first)
        second.cursor().execute(f"UPDATE work SET value = 1 WHERE name > '{resource}/1'")

        def wait_for_each_other() -> None:
            first.cursor().execute(f"UPDATE work SET value = 2 WHERE name = '{resource}/0'")
            other = Spawned(
                second.cursor().execute, f"UPDATE work SET value = 1 WHERE name = '{resource}/0'"
            )
            try:
                _until_blocked(where)
                # The other has changed more, so this one must give way.
                first.cursor().execute(f"UPDATE work SET value = 2 WHERE name = '{resource}/2'")
            finally:
                other.result()

        with pytest.raises(RuntimeError, match="a statement in it had failed"):
            with guard.transaction(resource, fence(1)):
                with pytest.raises(pymysql.OperationalError, match="Deadlock"):
                    guard.once(resource, wait_for_each_other)
        second.commit()
        assert not where.floors(resource)
        assert guard.once(resource, lambda: 7) == 7


@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_commit_whose_answer_is_lost(name: str, resource: str) -> None:
    """The driver's error, and nobody is told Accepted: it was committed all the same."""
    where = place(name)
    where.look(f"INSERT INTO work VALUES ('{resource}', 0)")
    with Proxy(where.port) as proxy:
        connection = (
            psycopg.connect(host="127.0.0.1", port=proxy.port, user="postgres")
            if name == "postgresql"
            else mariadb(port=proxy.port)
        )
        with closing(connection):
            guard = SQLGuard(connection)
            heard: list[Event] = []
            guard.listen(heard.append)
            lost = proxy.drop_next_reply(b"COMMIT")
            with pytest.raises((psycopg.OperationalError, pymysql.OperationalError)):
                with guard.transaction(resource, fence(1)):
                    cursor = connection.cursor()
                    cursor.execute(f"UPDATE work SET value = 1 WHERE name = '{resource}'")
            assert lost.is_set()
            assert not heard
    assert where.value(resource) == 1
    assert where.floors(resource) == [(DOMAIN, 1, 0)]


@pytest.mark.parametrize("name", PLACES)
def test_killed_holder_frees_the_row(name: str, resource: str) -> None:
    """A process that dies inside its transaction leaves neither its work nor its lock behind."""
    where = place(name)
    where.look(f"INSERT INTO work VALUES ('{resource}', 0)")
    address = where.path if isinstance(where, SQLitePlace) else str(where.port)
    command = [sys.executable, str(HOLDER), name, address, resource]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "inside\n"
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait(PATIENCE)
    with closing(Database(name)) as database:
        database.open()
        with SQLGuard(database.connection).transaction(resource, fence(1)):
            database.run(f"UPDATE work SET value = value + 1 WHERE name = '{resource}'")
    assert where.value(resource) == 1
    assert where.floors(resource) == [(DOMAIN, 1, 0)]
