"""The link for tasks: one connection, on which requests of all tasks follow each other.

Rule 1: replies come in the order of the requests; a request nobody waits for keeps its place.
Rule 2: a connection that saw a time-out or a cancel takes no more requests; those under way still
        get their answers, then it is closed (S1).
Rule 3: nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import hiredis

from .._concurrency import AsyncReader
from ..clocks import Clock
from ..errors import EngineUnavailable
from .settings import Settings
from .wire import (
    Follow,
    Greeting,
    Reply,
    check,
    forbidden,
    hello,
    pack,
    read_greeting,
    silent,
    unreachable,
)

Answer = asyncio.Future[Reply]


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
        self._pending: deque[tuple[Answer, float, float]] = deque()  # with deadline, time-out
        self._out: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._retired = False

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
        if self._retired and not self._pending:
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self.failed |= not self.closed and bool(self._pending)
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        why = str(error or "") or "the connection was closed"
        while self._pending:
            answer, _, _ = self._pending.popleft()
            if not answer.done():
                answer.set_exception(silent(self.settings, why))
        self.lost(self)

    # --- What the link does. ---

    def submit(self, request: bytes, timeout: float) -> Answer:
        """Send a request; the answer fails after `timeout` seconds."""
        answer = self._loop.create_future()
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
        return answer

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
            self.retire()
        if soonest is not None:
            self._watch(soonest)
        elif overdue:
            self.abort()

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


class AsyncLink:
    """Connections to one server, for the tasks of one event loop: one, and one for messages."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self.greeting = Greeting()
        self.on_greeting: Callable[[Greeting, float, float], None] = lambda *_: None
        self._clock = clock
        self._stream: Stream | None = None
        self._opening: asyncio.Task[Stream] | None = None
        self.mail: Stream | None = None
        self._subscribing: asyncio.Task[bool] | None = None
        self._streams: set[Stream] = set()
        self._closed = False

    async def call(self, request: bytes, timeout: float, follow: Follow | None = None) -> Reply:
        """Send a request and return its reply, which may be an error (a value, not raised).

        What `follow` makes of the reply goes out on the same connection; both are returned then.
        """
        stream = self._stream
        if stream is None or stream.closed:
            started = self._clock()
            stream = await self._ready(timeout)
            timeout -= self._clock() - started
        try:
            if follow is None:
                return await stream.submit(request, timeout)
            reply = await stream.submit(request, timeout)
            more = follow(reply)
            if more and stream.closed:
                raise silent(self.settings, "the connection was closed")
            return reply, await stream.submit(more, timeout) if more else None
        except asyncio.CancelledError:
            stream.retire()
            raise

    @property
    def latency(self) -> float:
        """Seconds that the last answer took; infinity without one on the present connection."""
        return math.inf if self._stream is None else self._stream.latency

    def submit(self, request: bytes, timeout: float) -> Answer | None:
        """Send a request if the connection is there."""
        stream = self._stream
        return None if stream is None or stream.closed else stream.submit(request, timeout)

    def retire(self) -> None:
        """Send no more on the connection there is: somebody who waited for it was cancelled."""
        if self._stream is not None:
            self._stream.retire()

    def leave(self) -> None:
        """Trust no connection any more: the server, or the way to it, is not what it was."""
        self.retire()
        if self.mail is not None:
            self.mail.abort()

    async def _ready(self, timeout: float) -> Stream:
        """Return the connection when it is made; who waits for another's tries again after him."""
        end = self._clock() + timeout
        while True:
            task, ours = self._opening, False
            if task is None:
                loop = asyncio.get_running_loop()
                opening = self._open(end - self._clock())
                task, ours = loop.create_task(opening, name="holdfast-link"), True
                task.add_done_callback(self._opened)
                self._opening = task
            await asyncio.wait([task], timeout=max(0.0, end - self._clock()))
            if not task.done():
                raise unreachable(self.settings, f"no answer within {timeout:.3g} s")
            if task.cancelled():
                raise unreachable(self.settings, "the client was closed")
            if ours or task.exception() is None or self._clock() >= end:
                return task.result()

    def _opened(self, task: asyncio.Task[Stream]) -> None:
        self._opening = None
        if not task.cancelled() and task.exception() is None:
            self._stream = task.result()

    async def _open(self, timeout: float) -> Stream:
        settings, loop = self.settings, asyncio.get_running_loop()
        stream = Stream(settings, loop)
        stream.lost = self._gone
        self._streams.add(stream)
        try:
            async with asyncio.timeout(timeout):
                if settings.path:
                    await loop.create_unix_connection(lambda: stream, settings.path)
                else:
                    if settings.resolve is None:
                        host, port = settings.address()
                    else:
                        host, port = await loop.run_in_executor(None, settings.address)
                    await loop.create_connection(lambda: stream, host, port, ssl=settings.tls)
                data, count = hello(settings)
                sent = self._clock()
                answers = [stream.submit(data if not at else b"", timeout) for at in range(count)]
                replies = await asyncio.gather(*answers)  # all of them fail, if one does
            greeting = self.greeting = read_greeting(settings, replies)
            self.on_greeting(greeting, sent, self._clock())
        except (OSError, TimeoutError) as error:
            stream.abort()
            self._streams.discard(stream)
            if isinstance(error, EngineUnavailable):
                raise
            why = error if str(error) else f"no answer within {timeout:.3g} s"
            raise unreachable(settings, why) from error
        except BaseException:
            stream.abort()
            self._streams.discard(stream)
            raise
        return stream

    def _gone(self, stream: Stream) -> None:
        if self._stream is stream:
            self._stream = None
            if stream.failed:
                self.leave()
        if stream.closed:
            self._streams.discard(stream)

    # --- Hearing what nobody asked for. ---

    @property
    def listening(self) -> bool:
        """Whether messages on our channel reach us."""
        return self.mail is not None

    async def listen(
        self,
        reader: AsyncReader,
        channel: bytes,
        hear: Callable[[bytes], None],
        lost: Callable[[], None],
        timeout: float,
    ) -> bool:
        """Subscribe; `hear` gets every message, `lost` is told when no more can come.

        False = the user has no right to.
        """
        if self._subscribing is None:
            subscribe = self._subscribe(channel, hear, lost, timeout)
            self._subscribing = asyncio.get_running_loop().create_task(subscribe)
            self._subscribing.add_done_callback(self._subscribed)
        task = self._subscribing
        await asyncio.wait([task], timeout=timeout)
        return not task.done() or task.cancelled() or task.result()

    def _subscribed(self, task: asyncio.Task[bool]) -> None:
        self._subscribing = None
        if not task.cancelled():
            task.exception()  # whoever waited has seen it

    async def _subscribe(
        self,
        channel: bytes,
        hear: Callable[[bytes], None],
        lost: Callable[[], None],
        timeout: float,
    ) -> bool:
        stream = await self._open(timeout)
        try:
            reply = await stream.submit(pack((b"SUBSCRIBE", channel)), timeout)
            if not forbidden(reply):
                check(self.settings, reply)
        except BaseException:
            stream.abort()
            raise
        if forbidden(reply):
            stream.abort()
            return False

        def gone(stream: Stream) -> None:
            self._streams.discard(stream)
            if self.mail is stream:
                self.mail = None
                lost()

        stream.hear = hear
        stream.lost = gone
        self.mail = stream
        if stream.closed:
            gone(stream)
        return True

    # --- The end. ---

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        tasks: list[asyncio.Task[Any]] = []
        for task in (self._opening, self._subscribing):
            if task is not None:
                task.cancel()
                tasks.append(task)
        if tasks:
            await asyncio.wait(tasks)
        self._stream = self.mail = None
        for stream in list(self._streams):
            stream.abort()
        if self._streams:
            await asyncio.sleep(0)  # the loop closes the sockets in its next turn
        self._streams.clear()

    def abandon(self) -> None:
        """In a forked child: nothing of this is ours."""
        for stream in self._streams:
            stream.abandon()
        self._streams, self._stream, self.mail = set(), None, None
        self._opening = self._subscribing = None
