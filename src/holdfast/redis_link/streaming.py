"""The link for tasks: one connection for all of them, and one for messages.

Rule 1: a connection that failed, or on which somebody was cancelled, is not given to anybody (S1).
Rule 2: nothing is sent twice.
Rule 3: many that need a connection wait for the same one; who is in a hurry spoils it for nobody.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

from .._concurrency import AsyncReader
from ..clocks import Clock
from ..errors import EngineUnavailable
from .round import Place
from .settings import Settings
from .stream import Stream
from .wire import (
    CLOSED,
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
                return await stream.ask(request, timeout)
            reply = await stream.ask(request, timeout)
            more = follow(reply)
            if more and stream.closed:
                raise silent(self.settings, CLOSED)
            return reply, await stream.ask(more, timeout) if more else None
        except asyncio.CancelledError:
            stream.retire()
            raise

    @property
    def latency(self) -> float:
        """Seconds that the last answer took; infinity without one on the present connection."""
        return math.inf if self._stream is None else self._stream.latency

    def submit(self, request: bytes, timeout: float, place: Place) -> bool:
        """Send a request if the connection is there, and say so."""
        stream = self._stream
        if stream is None or stream.closed:
            return False
        stream.submit(request, timeout, place)
        return True

    def retire(self) -> None:
        """Send no more on the connection there is: somebody who waited for it was cancelled."""
        if self._stream is not None:
            self._stream.retire()

    def leave(self) -> None:
        """Trust no connection any more: the server, or the way to it, is not what it was."""
        self.retire()
        if self.mail is not None:
            self.mail.abort()

    async def hear_out(self) -> None:
        """Wait for what is late, as long as anybody would."""
        for stream in list(self._streams):
            await stream.hear_out()

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
                answers = [stream.ask(data if not at else b"", timeout) for at in range(count)]
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
            reply = await stream.ask(pack((b"SUBSCRIBE", channel)), timeout)
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
        """Close all connections, after what is late."""
        self._closed = True
        tasks: list[asyncio.Task[Any]] = []
        for task in (self._opening, self._subscribing):
            if task is not None:
                task.cancel()
                tasks.append(task)
        if tasks:
            await asyncio.wait(tasks)
        self._stream = self.mail = None
        await self.hear_out()
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
