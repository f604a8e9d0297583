"""The link for tasks: a few threads make the requests, since botocore blocks.

Rule 1: a task that is cancelled leaves its request to the thread: what comes of it, nobody knows.
Rule 2: a request that finds no free thread within its time is not sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .settings import Settings
from .wire import Caller, unanswered

GRACE = 1.0  # seconds that a thread may be late: names are looked up without a time-out


class AsyncLink:
    """Talks to one table, for the tasks of one event loop."""

    def __init__(self, settings: Settings, connections: int) -> None:
        self._settings = settings
        self._connections = connections
        self._caller = Caller(settings, connections)
        self._threads = ThreadPoolExecutor(connections, "holdfast-dynamodb")

    async def ask(self, method: str, arguments: dict[str, Any], timeout: float) -> Any:
        """Make one request."""
        loop = asyncio.get_running_loop()
        end = time.monotonic() + timeout
        call = loop.run_in_executor(
            self._threads, self._caller.call, method, arguments, end, timeout
        )
        call.add_done_callback(_retrieve)
        done, _ = await asyncio.wait([call], timeout=timeout + GRACE)
        if not done:
            error = TimeoutError(f"nothing came within {timeout:.3g} s")
            raise unanswered(self._settings, method, error, timeout)
        return call.result()

    async def ask_all(
        self, method: str, requests: Sequence[dict[str, Any]], timeout: float
    ) -> list[Any | Exception]:
        """Make several requests at once; return answers, or what they failed with, in order."""
        calls = [self.ask(method, arguments, timeout) for arguments in requests]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    async def close(self) -> None:
        """Close all connections; a request still under way ends with its time."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._caller.close()

    def abandon(self) -> AsyncLink:
        """In a forked child: return a new link; nothing of this is ours."""
        return AsyncLink(self._settings, self._connections)


def _retrieve(call: asyncio.Future[Any]) -> None:
    """Take note of the error of a request that nobody waits for any more."""
    if not call.cancelled():
        call.exception()
