"""A real PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from .errors import ServerFailed
from .ports import LOOPBACK
from .process import ServerProcess
from .programs import postgres_program

_CONFIG = "postgresql.conf"
_USERS = ("postgres", "nobody")  # who runs it where we are root, which it refuses to be


class PostgresServer(ServerProcess):
    """A PostgreSQL server that trusts whoever reaches its port, and does not wait for the disk.

    `options` are further lines of postgresql.conf. What was committed survives `kill` and
    `restart`: the system keeps what the server has written, only a power failure would not.
    """

    name = "postgres"
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
        return f"postgresql://postgres@{LOOPBACK}:{self.port}/postgres"

    def restart(self, *, keep_data: bool = True) -> None:
        """Kill it and start it again on the same port, with what was committed or with nothing."""
        self.kill()
        if not keep_data:
            shutil.rmtree(self._data)
            self._make_data()
        self.start()

    # --- One process per connection: signals are for all of them. ---

    def terminate(self) -> None:
        """Ask it to end without waiting for its clients to leave."""
        self.resume()
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """End it at once, with all its connections, and keep its directory."""
        if not self.running:
            return
        super().pause()  # so that no further one is born
        children = self._children()
        for child in children:
            _send(child, signal.SIGKILL)
        super().kill()
        # What is left of them would keep the next one from starting.
        self._until(lambda: all(_state(child) in "Z" for child in children))

    def pause(self) -> None:
        """Stop it, with its state and its connections, until `resume`."""
        super().pause()
        children = self._children()
        for child in children:
            _send(child, signal.SIGSTOP)
        self._until(lambda: all(_state(child) in "TZ" for child in children))

    def resume(self) -> None:
        """Undo `pause`."""
        for child in self._children():
            _send(child, signal.SIGCONT)
        super().resume()

    def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for what signals must bring about: they are only on their way."""
        end = time.monotonic() + self.start_timeout
        while not condition():
            if time.monotonic() > end:
                raise self._failure("did not obey")
            time.sleep(0.003)

    def _children(self) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == self.pid:
                found.append(int(path.parent.name))
        return found

    # --- What it says to ServerProcess. ---

    def prepare(self) -> None:
        """Make an empty cluster of databases."""
        if self._user is not None:
            shutil.chown(self.directory, *self._user)
        self._make_data()

    def command_line(self) -> list[str]:
        """Return the program and its data."""
        return [*self._as_user(), self._found, "-D", str(self._data)]

    def is_ready(self) -> bool:
        """Say whether it takes connections."""
        return "database system is ready to accept connections" in self.log()

    @property
    def _found(self) -> str:
        return self._program or postgres_program()

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    @property
    def _user(self) -> tuple[int, int] | None:
        """Who it runs as, None for whoever we are."""
        if os.geteuid() != 0:
            return None
        import pwd  # which Windows lacks

        for name in _USERS:
            try:
                entry = pwd.getpwnam(name)
            except KeyError:
                continue
            return entry.pw_uid, entry.pw_gid
        raise ServerFailed(f"postgres cannot run as root, and there is no user {_USERS[0]}")

    def _as_user(self) -> list[str]:
        if self._user is None:
            return []
        # Changing the user makes Linux forget that it is to die with us, so it is said again.
        # Not runuser, su or sudo: they stay in between, and signals would reach them.
        user, group = self._user
        ids = [f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        return ["setpriv", *ids, "--pdeathsig", "KILL"]

    def _make_data(self) -> None:
        made = subprocess.run(
            [
                *self._as_user(),
                str(Path(self._found).resolve().with_name("initdb")),
                *("-D", str(self._data), "-U", "postgres", "-A", "trust"),
                *("-E", "UTF8", "--locale=C", "--no-sync"),
            ],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.start_timeout,
        )
        if made.returncode:
            raise ServerFailed(f"initdb ended with code {made.returncode}:\n{made.stdout}")
        lines = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "shared_buffers": "16MB",
            "max_connections": "100",
            "log_line_prefix": "%p ",
        } | self._options
        with (self._data / _CONFIG).open("a") as config:
            for name, value in lines.items():
                quoted = value.replace("'", "''")
                config.write(f"{name} = '{quoted}'\n")


def _send(process: int, number: signal.Signals) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def _state(process: int) -> str:
    """Return the letter of its state: T stands still, Z has ended; empty if it is not there."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
