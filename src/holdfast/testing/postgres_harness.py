"""Harnesses for the PostgreSQL engine: a real server behind a proxy, with or without PgBouncer."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .behind_proxy import Part
from .servers import PostgresServer, Proxy, ServerMissing, need, postgres_program
from .servers.pgbouncer import PgBouncer, pgbouncer_program
from .servers.ports import LOOPBACK
from .servers.postgres_standby import PostgresStandby, PostgresWithClock
from .servers.programs import faketime_library


class PostgresHarness(Part):
    """postgresql:// on one server; with a standby that may take over, if it is to fail over."""

    lab = "postgresql"
    shortest_ttl = 0.5
    patience = 30.0
    moment = 0.002
    brief = 0.5  # two connections are made first, and the server starts a process for each
    why_not = "it never throws out rows"

    server: PostgresServer
    proxy: Proxy

    def __init__(self, **options: str) -> None:
        self._options = options
        self._has_clock = self._replicated = False
        self._stack = ExitStack()
        self._servers: list[PostgresServer] = []
        self._replication: Proxy | None = None

    def missing(self) -> str:
        """Say how to install the server."""
        try:
            postgres_program()
        except ServerMissing as missing:
            return str(missing)
        return ""

    def equip(self, *hooks: str) -> None:
        """Give the server a clock of its own, or a standby, if these hooks need one."""
        if "step_clock" in hooks:
            faketime_library()
            self._has_clock = True
        self._replicated = self._replicated or "fail_over" in hooks

    def start(self) -> None:
        """Start the server and its proxy."""
        program = need(postgres_program)
        kind = PostgresWithClock if self._has_clock else PostgresServer
        with ExitStack() as stack:  # a start that fails halfway leaves nothing running
            self.server = stack.enter_context(kind(program, options=self._options))
            self._servers = [self.server]
            self.proxy = stack.enter_context(Proxy(self._before(stack)))
            if self._replicated:
                self._replication = stack.enter_context(Proxy(self.server.port))
                self._follow(stack)
            self._stack = stack.pop_all()
        self.url = f"postgresql://postgres@{LOOPBACK}:{self.proxy.port}/postgres"

    def _before(self, stack: ExitStack) -> int:
        """Return the port that clients are led to."""
        return self.server.port

    def stop(self) -> None:
        """Stop everything."""
        self._stack.close()

    def sql(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement on the server itself, past proxies; return its rows."""
        from psycopg import connect

        with connect(self.server.url, autocommit=True) as connection:
            cursor = connection.execute(text.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def connections(self) -> int:
        """Return how many connections the proxy has open."""
        return self.proxy.connections

    def keep_copy(self) -> None:
        """Copy its files at one instant: it stands still meanwhile."""
        self.server.pause()
        try:
            shutil.rmtree(self._copy, ignore_errors=True)
            shutil.copytree(self._data, self._copy, copy_function=_copy_owned)
        finally:
            self.server.resume()

    def roll_back(self) -> None:
        """Kill it and start it with the copy, as after a crash at that instant."""
        self.server.kill()
        shutil.rmtree(self._data)
        shutil.copytree(self._copy, self._data, copy_function=_copy_owned)
        _own(self._data, self.server)
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        self.server.start()

    def step_clock(self, seconds: float) -> None:
        """Set its wall clock."""
        assert isinstance(self.server, PostgresWithClock)
        self.server.step_clock(seconds)

    def flush(self) -> None:
        """Drop all tables of ours."""
        self.sql("DROP SCHEMA IF EXISTS holdfast CASCADE")

    def kick(self) -> None:
        """Terminate all connections of clients."""
        self.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    def logs(self) -> Mapping[str, str]:
        """Return what each server has written since it was last started."""
        return {f"server-{number}.log": one.log() for number, one in enumerate(self._servers)}

    @property
    def _data(self) -> Path:
        return self.server.directory / "data"

    @property
    def _copy(self) -> Path:
        return self.server.directory / "copy"

    # --- The standby. ---

    def part_replica(self) -> None:
        """Let nothing more reach the standby."""
        assert self._replication is not None
        self._replication.cut()

    def fail_over(self) -> None:
        """Kill the server, promote the standby with what it has heard, and make it a new one."""
        assert self._replication is not None
        old, new = self._servers
        assert isinstance(new, PostgresStandby)
        old.kill()
        new.promote()
        self._until_writable(new)
        self.server = new
        self.proxy.lead_to(new.port)
        self.proxy.close_all()
        self._replication.heal()
        self._replication.lead_to(new.port)
        self._servers = [new]
        self._follow(self._stack)

    def _follow(self, stack: ExitStack) -> None:
        assert self._replication is not None
        standby = PostgresStandby(self.server, self._replication.port)
        self._servers.append(stack.enter_context(standby))

    def _until_writable(self, server: PostgresServer) -> None:
        end = time.monotonic() + server.start_timeout
        while "archive recovery complete" not in server.log():
            if time.monotonic() > end:
                raise TimeoutError("the standby was not promoted in time")
            time.sleep(0.01)


class PgBouncerHarness(PostgresHarness):
    """postgresql:// through PgBouncer in transaction mode."""

    lab = ""
    bouncer: PgBouncer

    def start(self) -> None:
        """Start the server, PgBouncer and the proxy."""
        need(pgbouncer_program)
        super().start()
        self.url += "?listen=no"  # which clients also find out, and tell

    def _before(self, stack: ExitStack) -> int:
        self.bouncer = stack.enter_context(PgBouncer(self.server))
        return self.bouncer.port


def _copy_owned(source: str, target: str) -> None:
    shutil.copy2(source, target)


def _own(folder: Path, server: PostgresServer) -> None:
    """Give copied files to whoever runs the server."""
    user = server._user
    if user is not None:
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, *user)
