"""A counter behind HTTP: an ASGI service under uvicorn, with two workers."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from holdfast.guards import Fence
from holdfast.guards.http import fence_headers, raise_for_fence
from holdfast.testing.servers.process import ServerProcess
from tests.guards.contest import Resource

ROOT = Path(__file__).resolve().parents[3]
GUARDED, BARE = "/guarded/counter", "/bare/counter"
WORKERS = 2
TIMEOUT = 60.0
HOST = "127.0.0.1"


class Uvicorn(ServerProcess):
    """The service and its workers."""

    name = "uvicorn"
    start_timeout = 60.0
    stop_timeout = 30.0

    def __init__(self, counter: Path) -> None:
        super().__init__()
        self._counter = counter

    def command_line(self) -> Sequence[str]:
        """See ServerProcess."""
        options = ["--workers", str(WORKERS), "--lifespan", "off", "--no-access-log"]
        place = ["--host", HOST, "--port", str(self.port), "--app-dir", str(ROOT)]
        app = "tests.guards.resources.http_app:app"
        return [sys.executable, "-m", "uvicorn", *options, *place, app]

    def environment(self) -> Mapping[str, str]:
        """See ServerProcess."""
        return {**os.environ, "HOLDFAST_TEST_COUNTER": str(self._counter)}

    def is_ready(self) -> bool:
        """See ServerProcess."""
        if self.log().count("Started server process") < WORKERS:
            return False
        try:  # they say so before they listen
            socket.create_connection((HOST, self.port), TIMEOUT).close()
        except ConnectionRefusedError:
            return False
        return True

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{HOST}:{self.port}"


class GuardedService(Resource):
    """A number that a service keeps."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        # A new connection each time: that is how requests reach all workers.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.Client(
            base_url=address, timeout=TIMEOUT, trust_env=False, limits=limits
        )

    @classmethod
    @contextmanager
    def served(cls, folder: Path) -> Iterator[str]:
        """Start uvicorn."""
        counter = folder / "counter"
        counter.write_bytes(b"0")
        with Uvicorn(counter) as server:
            yield server.url

    def create(self) -> None:
        """See Resource."""
        assert self.value() == 0

    def value(self) -> int:
        """See Resource."""
        return int(self._client.get(BARE).raise_for_status().content)

    def increment(self, fence: Fence, guarded: bool, pause: Callable[[], None]) -> None:
        """See Resource."""
        place = GUARDED if guarded else BARE
        headers = fence_headers(GUARDED, fence) if guarded else {}
        answer = self._client.get(place, headers=headers)
        seen = int(raise_for_fence(answer).raise_for_status().content)
        pause()
        answer = self._client.put(place, headers=headers, content=b"%d" % (seen + 1))
        raise_for_fence(answer).raise_for_status()

    def close(self) -> None:
        """See Resource."""
        self._client.close()
