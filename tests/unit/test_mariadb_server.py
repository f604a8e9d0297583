"""MariaDB as a test server: started on an empty directory, and brought back with its data."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pymysql  # type: ignore[import-untyped]
import pytest

from holdfast.testing.servers import (
    MariaDBServer,
    ServerFailed,
    ServerMissing,
    mariadb_program,
    need,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def program() -> str:
    """MariaDB itself: without it there is nothing to test."""
    return need(mariadb_program)


def ask(server: MariaDBServer, statement: str) -> tuple[Any, ...]:
    """Execute a statement on a connection of its own."""
    connection = pymysql.connect(
        host="127.0.0.1", port=server.port, user="root", database="test", autocommit=True
    )
    with closing(connection), connection.cursor() as cursor:
        cursor.execute(statement)
        found: tuple[Any, ...] = cursor.fetchall()
        return found


def test_life_of_a_server() -> None:
    """It starts with its options, comes back with its data or without, and leaves nothing."""
    with MariaDBServer(options={"max-connections": "77"}) as server:
        assert server.url == f"mysql://root@127.0.0.1:{server.port}/test"
        assert ask(server, "SELECT @@max_connections") == ((77,),)
        assert ask(server, "SELECT @@character_set_server") == (("utf8mb4",),)
        assert Path(f"/proc/{server.pid}/comm").read_text() == "mariadbd\n"
        ask(server, "CREATE TABLE x (one INT) ENGINE=InnoDB")
        ask(server, "INSERT INTO x VALUES (1)")
        port, directory = server.port, server.directory
        server.restart()
        assert (server.port, server.directory) == (port, directory)
        assert ask(server, "SELECT one FROM x") == ((1,),)
        server.pause()
        server.resume()
        server.restart(keep_data=False)
        with pytest.raises(pymysql.ProgrammingError, match="doesn't exist"):
            ask(server, "SELECT one FROM x")
    assert not server.running
    assert not directory.exists()


def test_failure_shows_why() -> None:
    """An option that is none is in the message; nothing is left behind."""
    server = MariaDBServer(options={"no-such-option": "1"})
    with pytest.raises(ServerFailed, match="no-such-option"):
        server.start()
    assert not server.directory.exists()


def test_missing_program_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is not installed is named, with the command that installs it."""
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(ServerMissing, match="apt-get install mariadb-server-core"):
        mariadb_program()
