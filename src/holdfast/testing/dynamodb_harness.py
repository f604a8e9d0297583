"""The harness for DynamoDB: DynamoDB Local behind a proxy, one table for all tests."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from .. import connect
from .behind_proxy import Part
from .servers import DynamoDBServer, Proxy, ServerMissing, dynamodb_program, need
from .servers.ports import LOOPBACK

TABLE = "locks"
WARM = 5  # rounds


@cache
def shared_server() -> DynamoDBServer:
    """Return one server for all who do not need one of their own: it takes seconds to start.

    It is stopped when this process ends.
    """
    return DynamoDBServer(need(dynamodb_program)).start()


class DynamoDBHarness(Part):
    """dynamodb:// on DynamoDB Local, which has the protocol of the real one and runs anywhere.

    With `persist` it is a server of its own, that keeps its data; else all in a process share one.
    """

    lab = "dynamodb"
    shortest_ttl = 1.5
    moment = 0.01
    brief = 1.0  # a client of botocore is made first, which takes longer than a hundred requests

    table = TABLE
    server: DynamoDBServer
    proxy: Proxy

    def __init__(self, *, persist: bool = False) -> None:
        self._stack = ExitStack()
        self._persist = persist

    def missing(self) -> str:
        """Say how to install the server."""
        try:
            dynamodb_program()
        except ServerMissing as missing:
            return str(missing)
        return ""

    def equip(self, *hooks: str) -> None:
        """Keep data on disk: it may have to outlive the server."""
        self._persist = True

    def start(self) -> None:
        """Start the server and its proxy."""
        with ExitStack() as stack:  # a start that fails halfway leaves nothing running
            if self._persist:
                own = DynamoDBServer(need(dynamodb_program), persist=True)
                self.server = stack.enter_context(own)
            else:
                self.server = shared_server()
            self.proxy = stack.enter_context(Proxy(self.server.port))
            self._stack = stack.pop_all()
        self.url = self.url_of(self.proxy.port)
        self._warm_up()

    def _warm_up(self) -> None:
        """Make the table, and let Java load what it needs: its first answers are slow."""
        with connect(self.url, connect_timeout=60) as client:
            for number in range(WARM):
                with client.lock("warm", ttl=60), client.semaphore(f"warm/{number}", 2, ttl=60):
                    client.locks()

    @staticmethod
    def url_of(port: int) -> str:
        """Return the URL of the table behind a port."""
        return f"dynamodb://local/{TABLE}?endpoint=http://{LOOPBACK}:{port}"

    def stop(self) -> None:
        """Stop both."""
        self._stack.close()

    def connections(self) -> int:
        """Return how many clients are connected; the server itself hangs up when it likes."""
        return self.proxy.clients

    def keep_copy(self) -> None:
        """Copy its file at one instant: it stands still meanwhile."""
        self.server.pause()
        try:
            shutil.rmtree(self._copy, ignore_errors=True)
            shutil.copytree(self._data, self._copy)
        finally:
            self.server.resume()

    def roll_back(self) -> None:
        """Kill it and start it with the copy."""
        self.server.kill()
        shutil.rmtree(self._data)
        shutil.copytree(self._copy, self._data)
        self.server.start()

    def logs(self) -> Mapping[str, str]:
        """Return what the server has written since it was last started."""
        return {"server.log": self.server.log()}

    @property
    def _data(self) -> Path:
        return self.server.directory / "data"

    @property
    def _copy(self) -> Path:
        return self.server.directory / "copy"
