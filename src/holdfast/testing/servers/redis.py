"""A real Redis or Valkey server."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .certificates import make_certificate
from .ports import LOOPBACK
from .process import ServerProcess
from .programs import faketime_library, redis_program
from .resp import run_commands

_CONFIG = "redis.conf"
_CLOSE = 0.2  # seconds


class RedisServer(ServerProcess):
    """A Redis or Valkey server that keeps nothing on disk unless told to.

    `persist` writes every command to disk before it is answered. `options` are further lines of
    the configuration. `fake_clock` gives it a wall clock of its own, see `step_clock`.
    """

    name = "redis"

    def __init__(
        self,
        program: str | None = None,
        *,
        persist: bool = False,
        replica_of: RedisServer | None = None,
        options: Mapping[str, str] | None = None,
        fake_clock: bool = False,
        tls: bool = False,
    ) -> None:
        super().__init__()
        self._program = program
        self._persist = persist
        self._replica_of = replica_of
        self._options = dict(options or {})
        self._fake_clock = fake_clock
        self._tls = tls

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"{'rediss' if self._tls else 'redis'}://{LOOPBACK}:{self.port}/0"

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority that has signed the server's own, if it speaks TLS."""
        return self.directory / "ca.crt"

    @property
    def password(self) -> str | None:
        """The password that clients need, if any."""
        return self._options.get("requirepass")

    def restart(self, *, keep_data: bool) -> None:
        """Kill it and start it again on the same port, with what is on disk or with nothing.

        What is on disk is everything with `persist`, and nothing without.
        """
        self.kill()
        if not keep_data:
            shutil.rmtree(self._data)
            self._data.mkdir()
        self.start()

    def command(self, *words: object) -> Any:
        """Run one command on a connection of its own; return its reply as str, int, list, None."""
        first = [] if self.password is None else [("AUTH", self.password)]
        ca_file = self.ca_file if self._tls else None
        return run_commands(self.port, *first, words, ca_file=ca_file)

    def step_clock(self, seconds: float) -> None:
        """Set the wall clock that far from the real one (0: back to it); timers do not notice."""
        if not self._fake_clock:
            raise ValueError("only a server that was made with fake_clock=True has such a clock")
        self._set_offset(seconds)
        if not self.running or self.paused:
            return
        # Valkey looks at the clock a little earlier than it answers.
        end = time.monotonic() + self.start_timeout
        while abs(self._ahead() - seconds) > _CLOSE:
            if time.monotonic() > end:
                raise self._failure("did not follow its clock")

    # --- What it says to ServerProcess. ---

    def prepare(self) -> None:
        """Write its configuration, once: Sentinel and CONFIG REWRITE may change it later."""
        self._data.mkdir()
        if self._fake_clock:
            self._set_offset(0)
        if self._tls:
            make_certificate(self.directory)
        lines = "".join(f"{name} {value}\n" for name, value in self._configuration().items())
        (self.directory / _CONFIG).write_text(lines)

    def command_line(self) -> list[str]:
        """Return the program and its configuration."""
        return [self._program or redis_program(), str(self.directory / _CONFIG)]

    def environment(self) -> Mapping[str, str]:
        """Return the environment, with libfaketime in it for a fake clock."""
        if not self._fake_clock:
            return os.environ
        return {
            **os.environ,
            # libc by name, so that it comes before jemalloc: otherwise that and libfaketime call
            # each other for ever at start.
            "LD_PRELOAD": f"{faketime_library()}:libc.so.6",
            "FAKETIME_TIMESTAMP_FILE": str(self._offset),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def is_ready(self) -> bool:
        """Say whether it takes commands."""
        return "Ready to accept connections" in self.log()

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    @property
    def _offset(self) -> Path:
        return self.directory / "clock"

    def _set_offset(self, seconds: float) -> None:
        # Replaced as a whole: the server may read it at any moment.
        fresh = self._offset.with_suffix(".new")
        fresh.write_text(f"{seconds:+f}")
        fresh.replace(self._offset)

    def _ahead(self) -> float:
        """Return how far its clock is ahead of ours."""
        whole, millionths = self.command("TIME")
        return int(whole) + int(millionths) / 1e6 - time.time()

    def _configuration(self) -> dict[str, str]:
        lines = {
            "bind": LOOPBACK,
            "port": "0" if self._tls else str(self.port),
            "dir": str(self._data),
            "save": '""',
            "appendonly": "yes" if self._persist else "no",
            "appendfsync": "always" if self._persist else "no",
            "repl-diskless-sync-delay": "0",  # a replica need not wait for more of them
        }
        if self._tls:
            lines |= {
                "tls-port": str(self.port),
                "tls-cert-file": str(self.directory / "server.crt"),
                "tls-key-file": str(self.directory / "server.key"),
                "tls-ca-cert-file": str(self.ca_file),
                "tls-auth-clients": "no",
            }
        if self._replica_of is not None:
            lines["replicaof"] = f"{LOOPBACK} {self._replica_of.port}"
        return lines | self._options
