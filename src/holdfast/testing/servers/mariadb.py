"""A real MariaDB server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from .errors import ServerFailed
from .ports import LOOPBACK
from .process import ServerProcess
from .programs import mariadb_program

DATABASE = "test"


class MariaDBServer(ServerProcess):
    """A MariaDB server that lets everybody in as root, and does not wait for the disk.

    It starts on an empty directory, without tables of users and rights, and so in a moment.
    `options` are further options of mariadbd. What was committed survives `kill` and `restart`:
    the system keeps what the server has written, only a power failure would not.
    """

    name = "mariadb"
    start_timeout = 60.0  # it makes its files first, which takes a busy disk long

    def __init__(
        self, program: str | None = None, *, options: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self._program = program
        self._options = dict(options or {})

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"mysql://root@{LOOPBACK}:{self.port}/{DATABASE}"

    def restart(self, *, keep_data: bool = True) -> None:
        """Kill it and start it again on the same port, with what was committed or with nothing."""
        self.kill()
        if not keep_data:
            shutil.rmtree(self._data)
            self._make_data()
        self.start()

    # --- What it says to ServerProcess. ---

    def prepare(self) -> None:
        """Make a directory with an empty database in it."""
        self._make_data()

    def command_line(self) -> list[str]:
        """Return the program and its options."""
        options = {
            "bind-address": LOOPBACK,
            "port": str(self.port),
            "socket": str(self.directory / "socket"),
            "pid-file": str(self.directory / "pid"),
            "innodb-buffer-pool-size": "32M",
            "innodb-flush-log-at-trx-commit": "2",  # written at once, to disk when it suits
            "character-set-server": "utf8mb4",
        } | self._options
        return [*self._program_on_data(), *(f"--{name}={value}" for name, value in options.items())]

    def is_ready(self) -> bool:
        """Say whether it takes connections."""
        return "ready for connections" in self.log()

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _make_data(self) -> None:
        self._data.mkdir()
        # Ended in order once: a server that makes its files and is killed soon leaves them empty.
        made = subprocess.run(
            [*self._program_on_data(), "--bootstrap"],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.start_timeout,
        )
        if made.returncode:
            raise ServerFailed(f"mariadbd --bootstrap failed:\n{made.stdout}")
        (self._data / DATABASE).mkdir()  # a directory in there is a database

    def _program_on_data(self) -> list[str]:
        # It runs as root only where it is told to; elsewhere as whoever we are.
        user = ["--user=root"] if os.geteuid() == 0 else []
        program = self._program or mariadb_program()
        words = ["--no-defaults", "--skip-grant-tables", f"--datadir={self._data}", *user]
        return [program, *words, "--innodb-log-file-size=8M", "--innodb-flush-method=nosync"]
