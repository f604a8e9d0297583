"""A real PgBouncer before a PostgreSQL server, in transaction mode: sessions belong to nobody."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from .errors import ServerMissing
from .ports import LOOPBACK
from .postgres import PostgresServer
from .process import ServerProcess

_CONFIG = "pgbouncer.ini"


def pgbouncer_program() -> str:
    """Return the path of pgbouncer."""
    # Debian keeps it where only root looks.
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if found is None:
        raise ServerMissing("pgbouncer is not installed: apt-get install pgbouncer")
    return found


class PgBouncer(ServerProcess):
    """Forwards to a server that runs; a statement goes to whichever of few connections is free.

    `options` are further lines of its configuration.
    """

    name = "pgbouncer"

    def __init__(self, server: PostgresServer, *, options: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._server = server
        self._options = dict(options or {})

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"postgresql://postgres@{LOOPBACK}:{self.port}/postgres"

    def prepare(self) -> None:
        """Write its configuration."""
        lines = {
            "listen_addr": LOOPBACK,
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": "10",
            "max_client_conn": "500",
        } | self._options
        where = f"host={LOOPBACK} port={self._server.port} user=postgres"
        text = f"[databases]\n* = {where}\n[pgbouncer]\n"
        text += "".join(f"{name} = {value}\n" for name, value in lines.items())
        path = self.directory / _CONFIG
        path.write_text(text)
        if self._server._user is not None:
            for one in (self.directory, path):
                shutil.chown(one, *self._server._user)

    def command_line(self) -> list[str]:
        """Return the program and its configuration."""
        return [*self._server._as_user(), pgbouncer_program(), str(self.directory / _CONFIG)]

    def is_ready(self) -> bool:
        """Say whether it takes connections."""
        return "process up" in self.log()
