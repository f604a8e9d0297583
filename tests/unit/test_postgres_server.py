"""PostgreSQL as a test server: many processes that are one, to start, stop, pause and kill."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast.testing.servers import (
    PostgresServer,
    ServerFailed,
    ServerMissing,
    need,
    postgres_program,
    programs,
)
from tests.unit.waiting import PATIENCE, until

pytestmark = pytest.mark.slow

START = """
import os, signal
from holdfast.testing.servers import PostgresServer
server = PostgresServer().start()
print(server.pid, server.directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def program() -> str:
    """PostgreSQL itself: without it there is nothing to test."""
    return need(postgres_program)


def is_gone(pid: int) -> bool:
    """Say whether no such process runs; one that nobody has waited for does not run either."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def ask(server: PostgresServer, statement: str) -> list[Any]:
    """Execute a statement on a connection of its own."""
    with closing(psycopg.connect(server.url, autocommit=True)) as connection:
        found = connection.execute(statement)
        return found.fetchall() if found.description else []


def test_life_of_a_server() -> None:
    """It starts with its options, comes back with its data or without, and leaves nothing."""
    options = {"work_mem": "1234kB", "log_statement": "all", "cluster_name": "o'clock"}
    with PostgresServer(options=options) as server:
        assert ask(server, "SHOW work_mem") == [("1234kB",)]
        assert ask(server, "SHOW cluster_name") == [("o'clock",)]
        assert "statement: SHOW work_mem" in server.log()
        assert Path(f"/proc/{server.pid}/comm").read_text() == "postgres\n"
        port, pid, directory = server.port, server.pid, server.directory
        ask(server, "CREATE TABLE x AS SELECT 1 AS one")
        server.restart()
        assert (server.port, server.directory) == (port, directory)
        assert server.pid != pid
        assert ask(server, "SELECT one FROM x") == [(1,)]
        server.restart(keep_data=False)
        with pytest.raises(psycopg.errors.UndefinedTable):
            ask(server, "SELECT one FROM x")
        assert ask(server, "SHOW work_mem") == [("1234kB",)]
        pid = server.pid
    assert is_gone(pid)
    assert not directory.exists()


def test_pause_kill_and_stop_reach_every_process() -> None:
    """A connection stands still with the server, dies with it, and does not keep it from ending."""
    with PostgresServer() as server:
        with closing(psycopg.connect(server.url)) as connection:
            backend = connection.info.backend_pid
            server.pause()
            state = Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[0]
            assert state == "T"
            server.resume()
            assert connection.execute("SELECT 1").fetchone() == (1,)
            server.kill()
            assert is_gone(backend)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        server.kill()  # a dead one stays dead
        server.start()
        connection = psycopg.connect(server.url)
        server.pause()
        pid = server.pid
    assert is_gone(pid)
    connection.close()


def test_dies_with_the_process_that_started_it() -> None:
    """Also where it runs as another user than we do."""
    command = [sys.executable, "-W", "ignore", "-c", START]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        output, _ = child.communicate(timeout=6 * PATIENCE)
    assert child.returncode == -signal.SIGKILL
    pid, directory = output.split()
    until(lambda: is_gone(int(pid)))
    shutil.rmtree(directory)  # for which there was no time


def test_failure_shows_why() -> None:
    """An option that is none is in the message; nothing is left behind."""
    server = PostgresServer(options={"no_such_option": "1"})
    with pytest.raises(ServerFailed, match="no_such_option"):
        server.start()
    assert not server.directory.exists()


def test_missing_program_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is not installed is named, with the command that installs it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "Path", lambda _: tmp_path)
    with pytest.raises(ServerMissing, match="apt-get install postgresql"):
        postgres_program()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_root_runs_it_as_somebody_else() -> None:
    """PostgreSQL refuses to be root; its files belong to whoever runs it."""
    with PostgresServer() as server:
        owner = os.stat(f"/proc/{server.pid}").st_uid
        assert owner != 0
        assert os.stat(server.directory / "data").st_uid == owner
