"""One connection of an event loop, on which requests of all tasks follow each other.

Rule 1: replies come in the order of the requests; a request nobody waits for keeps its place.
Rule 2: a connection that saw a time-out or a cancel takes no more requests; those under way still
        get their answers, then it is closed (S1).
Rule 3: each request has an answer or an error in the end, also one that came too late to be sent.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import deque
from collections.abc import Callable
from typing import cast

import hiredis

from .round import Place
from .settings import Settings
from .wire import CLOSED, Reply, silent, unreachable

Answer = asyncio.Future[Reply]
Expected = Answer | Place


class Stream(asyncio.Protocol):
    """One connection: requests go out together, replies come back in order."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = settings
        self.hear: Callable[[bytes], None] | None = None
        self.lost: Callable[[Stream], None] = lambda stream: None
        self.closed = False
        self.failed = False  # somebody waited for an answer in vain
        self.latency = math.inf  # seconds that the last answer took
        self._loop = loop
        self._reader = hiredis.Reader()
        self._transport: asyncio.Transport | None = None
        self._pending: deque[tuple[Expected, float, float]] = deque()  # with deadline, time-out
        self._out: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._retired = False
        self._progress: Answer | None = None  # is told when something has come, or never will

    # --- What the loop says. ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        reader = self._reader
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not False:
                if self._pending:
                    answer, deadline, timeout = self._pending.popleft()
                    self.latency = self._loop.time() - deadline + timeout
                    if not answer.done():
                        answer.set_result(reply)
                elif self.hear is not None and isinstance(reply, list) and len(reply) == 3:
                    self.hear(reply[2])
        except hiredis.HiredisError:
            self.abort()
            return
        self._tell_progress()
        if self._retired and not self._pending:
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self.failed |= not self.closed and bool(self._pending)
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        why = str(error or "") or CLOSED
        while self._pending:
            answer, _, _ = self._pending.popleft()
            if not answer.done():
                answer.set_exception(silent(self.settings, why))
        self._tell_progress()
        self.lost(self)

    def _tell_progress(self) -> None:
        if self._progress is not None and not self._progress.done():
            self._progress.set_result(None)

    # --- What the link does. ---

    def ask(self, request: bytes, timeout: float) -> Answer:
        """Send a request; the answer fails after `timeout` seconds."""
        answer = self._loop.create_future()
        self.submit(request, timeout, answer)
        return answer

    def submit(self, request: bytes, timeout: float, answer: Expected) -> None:
        """Send a request whose answer, or the error instead of it, goes to a place of its own."""
        if self.closed:  # nobody would ever look after it
            answer.set_exception(unreachable(self.settings, CLOSED))
            return
        deadline = self._loop.time() + timeout
        first = not self._pending
        self._pending.append((answer, deadline, timeout))
        if self._timer is None or deadline < self._timer.when():
            self._watch(deadline)
        if first and self._transport is not None:
            self._transport.write(request)
        else:
            if not self._out:
                self._loop.call_soon(self._flush)
            self._out.append(request)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if out and self._transport is not None and not self.closed:
            self._transport.write(b"".join(out))

    def _watch(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._look)

    def _look(self) -> None:
        """Fail what has no answer in time."""
        self._timer = None
        now = self._loop.time()
        soonest = None
        overdue = False
        for answer, deadline, _ in self._pending:
            if deadline <= now:
                overdue = True
                if not answer.done():
                    answer.set_exception(silent(self.settings, "within its time-out"))
            elif soonest is None or deadline < soonest:
                soonest = deadline
        if overdue:
            self.failed = True
            self._tell_progress()
            self.retire()
        if soonest is not None:
            self._watch(soonest)
        elif overdue:
            self.abort()

    async def hear_out(self) -> None:
        """Wait for what is late, as long as anybody would."""
        while any(isinstance(answer, Place) and answer.late for answer, _, _ in self._pending):
            self._progress = self._loop.create_future()
            await self._progress

    def retire(self) -> None:
        """Take no more requests; close as soon as nobody waits here."""
        self._retired = True
        self.lost(self)
        if all(answer.done() for answer, _, _ in self._pending):
            self.abort()

    def abort(self) -> None:
        """Close at once, without a goodbye."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def abandon(self) -> None:
        """In a forked child: let go of the socket, and leave the parent's loop alone."""
        self.closed = True
        if self._transport is not None:
            file = self._transport.get_extra_info("socket").fileno()
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, file)  # closing it would tell the epoll that we share
            os.close(nothing)
