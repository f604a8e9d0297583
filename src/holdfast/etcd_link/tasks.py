"""The link for tasks: the same channels, whose answers wake tasks; a thread reads the watches.

Not on grpc.aio: its channels cannot be made to hold still for a fork, and a child that finds one
open crashes sooner or later, whatever it was forked for.
"""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import grpc

from .blocking import WatchStream
from .line import Line, Lines
from .wire import AUTHENTICATE, LEADER, Metadata, Method


class AsyncLink(Lines):
    """Talks to one member of a cluster at a time, for the tasks of one event loop."""

    async def call(self, method: Method, request: Any, timeout: float) -> Any:
        """Send a request and return its answer."""
        login = self._metadata or await self._log_in(timeout)
        line, limit = self._begin(timeout)
        try:
            return await self._answer(line, method, request, limit, login)
        except grpc.RpcError as error:
            if not self.refused_login(error):
                raise self.problem(line, error, limit) from error
        login = await self._log_in(timeout)
        line, limit = self._begin(timeout)
        try:
            return await self._answer(line, method, request, limit, login)
        except grpc.RpcError as error:
            raise self.problem(line, error, limit) from error

    async def _answer(
        self, line: Line, method: Method, request: Any, timeout: float, login: Metadata
    ) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        try:
            call = line.calls[method].future(request, timeout=timeout, metadata=login)
        except ValueError:  # its channel was closed this very moment
            self._end()
            raise self.closed() from None
        call.add_done_callback(partial(self._wake, loop, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            call.cancel()
            raise

    def _wake(
        self, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Any], call: Any
    ) -> None:
        """Hand an answer to the loop; in a thread of gRPC's, since the loop may be forking."""
        self._end()
        try:
            loop.call_soon_threadsafe(_settle, answer, call)
        except RuntimeError:
            pass  # the loop is closed: whoever waited there is gone

    async def _log_in(self, timeout: float) -> Metadata:
        line, limit = self._begin(timeout)
        try:
            request = self._login_request()
            answer = await self._answer(line, AUTHENTICATE, request, limit, (LEADER,))
        except grpc.RpcError as error:
            return self._not_logged_in(line, error, limit)
        return self._logged_in(answer.token)

    async def watch(self, timeout: float) -> AsyncWatchStream:
        """Open a stream of watches; there is one at a time."""
        login = self._metadata or await self._log_in(timeout)
        line, _ = self._begin(timeout)
        try:
            stream = self._stream = AsyncWatchStream(self, line, login)
        finally:
            self._end()
        if self._line is not line:
            stream.cancel()  # it was left meanwhile
        return stream

    async def close(self) -> None:
        """Close all channels of ours."""
        self._close_all()


def _settle(answer: asyncio.Future[Any], call: Any) -> None:
    if answer.done():
        return
    error = call.exception()
    if error is None:
        answer.set_result(call.result())
    else:
        answer.set_exception(error)


class AsyncWatchStream:
    """Watches in both directions: any task may send, one reads, from a thread that hands over."""

    def __init__(self, link: AsyncLink, line: Line, login: Metadata) -> None:
        self._stream = WatchStream(link, line, login)
        self._loop = asyncio.get_running_loop()
        self._responses: asyncio.Queue[Any] = asyncio.Queue()
        threading.Thread(target=self._read, name="holdfast-etcd-stream", daemon=True).start()

    def _read(self) -> None:
        response = True
        while response is not None:
            response = self._stream.read()
            try:
                self._loop.call_soon_threadsafe(self._responses.put_nowait, response)
            except RuntimeError:
                return  # the loop is closed
        self._stream.cancel()

    def send(self, request: Any) -> None:
        """Send a request, without waiting."""
        self._stream.send(request)

    async def read(self) -> Any:
        """Return the next response; None when no more can come."""
        return await self._responses.get()

    def cancel(self) -> None:
        """End it: `read` returns None."""
        self._stream.cancel()
