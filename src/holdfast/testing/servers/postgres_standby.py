"""A PostgreSQL server that follows another, and may be promoted; one whose clock can be set."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from .errors import ServerFailed
from .ports import LOOPBACK
from .postgres import PostgresServer
from .programs import faketime_library


class PostgresStandby(PostgresServer):
    """A standby of a server that runs; what it hears comes through `source`, a port.

    Made by pg_basebackup. `promote` makes it a server of its own, with what it has heard.
    """

    name = "standby"

    def __init__(self, primary: PostgresServer, source: int) -> None:
        super().__init__(primary._program, options=primary._options)
        self._source = source

    def is_ready(self) -> bool:
        """Say whether it takes connections, be it only for reading."""
        return "database system is ready to accept" in self.log()

    def promote(self) -> None:
        """Let it follow no longer; it takes writes soon after."""
        # Under its name only when it is finished: any signal may let the server find and remove it.
        order = self.directory / "promote"
        order.touch()
        if self._user is not None:
            os.chown(order, *self._user)
        order.replace(self._data / "promote")
        os.kill(self.pid, signal.SIGUSR1)

    def _make_data(self) -> None:
        copied = subprocess.run(
            [
                *self._as_user(),
                str(Path(self._found).resolve().with_name("pg_basebackup")),
                *("-D", str(self._data), "-R", "-X", "stream", "-c", "fast", "--no-sync"),
                *("-h", LOOPBACK, "-p", str(self._source), "-U", "postgres"),
            ],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.start_timeout,
        )
        if copied.returncode:
            code = copied.returncode
            raise ServerFailed(f"pg_basebackup ended with code {code}:\n{copied.stdout}")
        with (self._data / "postgresql.conf").open("a") as config:
            config.write(f"port = {self.port}\n")


class PostgresWithClock(PostgresServer):
    """A server with a wall clock of its own, see `step_clock`."""

    def command_line(self) -> list[str]:
        """Return the program and its data, with libfaketime in its environment."""
        variables = {
            "LD_PRELOAD": faketime_library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._offset),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        # By `env`, as the user who runs it: what libfaketime makes for root is root's.
        words = [f"{name}={value}" for name, value in variables.items()]
        return [*self._as_user(), "env", *words, self._found, "-D", str(self._data)]

    def prepare(self) -> None:
        """Make an empty cluster, and a clock that is right."""
        self.step_clock(0.0)
        super().prepare()

    def step_clock(self, seconds: float) -> None:
        """Set the wall clock that far from the real one (0: back to it); timers do not notice."""
        # Replaced as a whole: the server may read it at any moment.
        fresh = self._offset.with_suffix(".new")
        fresh.write_text(f"{seconds:+f}")
        fresh.chmod(0o644)
        fresh.replace(self._offset)

    @property
    def _offset(self) -> Path:
        return self.directory / "clock"
