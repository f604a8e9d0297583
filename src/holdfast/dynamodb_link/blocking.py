"""The link for threads: each makes its requests itself; several at once are shared out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .._concurrency import Mutex
from .settings import Settings
from .wire import Caller


class Link:
    """Talks to one table, for all threads."""

    def __init__(self, settings: Settings, connections: int) -> None:
        self._settings = settings
        self._connections = connections
        self._mutex = Mutex()
        self._caller = Caller(settings, max(connections, 32))
        self._helpers: ThreadPoolExecutor | None = None

    def ask(self, method: str, arguments: dict[str, Any], timeout: float) -> Any:
        """Make one request."""
        return self._caller.call(method, arguments, time.monotonic() + timeout, timeout)

    def ask_all(
        self, method: str, requests: Sequence[dict[str, Any]], timeout: float
    ) -> list[Any | Exception]:
        """Make several requests at once; return answers, or what they failed with, in order."""
        end = time.monotonic() + timeout

        def attempt(arguments: dict[str, Any]) -> Any | Exception:
            try:
                return self._caller.call(method, arguments, end, timeout)
            except Exception as error:
                return error

        if len(requests) == 1:
            return [attempt(requests[0])]
        with self._mutex:
            if self._helpers is None:
                self._helpers = ThreadPoolExecutor(self._connections, "holdfast-dynamodb")
            helpers = self._helpers
        return list(helpers.map(attempt, requests))

    def close(self) -> None:
        """Close all connections."""
        if self._helpers is not None:
            self._helpers.shutdown(wait=False, cancel_futures=True)
        self._caller.close()

    def abandon(self) -> Link:
        """In a forked child: return a new link; nothing of this is ours."""
        return Link(self._settings, self._connections)
