"""Amazon's own DynamoDB Local, where only this machine reaches it."""

from __future__ import annotations

import http.client
import shutil
import sys
import time
from pathlib import Path

from . import apart
from .ports import LOOPBACK
from .process import ServerProcess
from .programs import DynamoDBProgram, dynamodb_program

_MOMENT = 0.05  # seconds
_INSIDE = 8000  # its port, in a network namespace that is all its own
_SETTINGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_OPTIONS = ("-sharedDb", "-disableTelemetry", "-port", str(_INSIDE))


class DynamoDBServer(ServerProcess):
    """DynamoDB Local, in memory unless told to `persist`; Linux only.

    It would listen on all interfaces; so it runs in a network namespace of its own, and `port` of
    127.0.0.1 is the only way in. Whatever key and region a client shows, it sees the same tables.
    """

    name = "dynamodb"
    start_timeout = 60.0

    def __init__(self, program: DynamoDBProgram | None = None, *, persist: bool = False) -> None:
        super().__init__()
        self._program = program
        self._persist = persist

    @property
    def url(self) -> str:
        """What clients call endpoint_url."""
        return f"http://{LOOPBACK}:{self.port}"

    def restart(self, *, keep_data: bool) -> None:
        """Kill it and start it again on the same port, with what is on disk or with nothing.

        What is on disk is everything with `persist`, and nothing without.
        """
        self.kill()
        if not keep_data:
            shutil.rmtree(self._data)
            self._data.mkdir()
        self.start()

    # --- What it says to ServerProcess. ---

    def prepare(self) -> None:
        """Make a place for its data."""
        self._data.mkdir()

    def command_line(self) -> list[str]:
        """Return Java with its settings, behind what sets it apart."""
        java, jar = self._program or dynamodb_program()
        library = f"-Djava.library.path={jar.parent / 'DynamoDBLocal_lib'}"
        store = ["-dbPath", str(self._data)] if self._persist else ["-inMemory"]
        return [
            *(sys.executable, "-I", "-S", apart.__file__, str(self.port), str(_INSIDE)),
            *(java, *_SETTINGS, library, "-jar", str(jar), *store, *_OPTIONS),
        ]

    def is_ready(self) -> bool:
        """Say whether it answers, and is what it says in its log."""
        if "DynamoDB Local" not in self.log():
            return False
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=1)
        try:
            connection.request("GET", "/")
            return connection.getresponse().getheader("x-amzn-RequestId") is not None
        except (OSError, http.client.HTTPException):
            time.sleep(_MOMENT)  # asking costs it time that it needs to start
            return False
        finally:
            connection.close()

    @property
    def _data(self) -> Path:
        return self.directory / "data"
