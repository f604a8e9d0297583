"""The link for threads: blocking calls on one channel, and one stream of watches that one reads."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

import grpc

from .line import Line, Lines
from .wire import AUTHENTICATE, LEADER, Metadata, Method


class Link(Lines):
    """Talks to one member of a cluster at a time, for all threads."""

    def call(self, method: Method, request: Any, timeout: float) -> Any:
        """Send a request and return its answer."""
        login = self._metadata or self._log_in(timeout)
        line, limit = self._begin(timeout)
        try:
            return self._answer(line, method, request, limit, login)
        except grpc.RpcError as error:
            if not self.refused_login(error):
                raise self.problem(line, error, limit) from error
        login = self._log_in(timeout)
        line, limit = self._begin(timeout)
        try:
            return self._answer(line, method, request, limit, login)
        except grpc.RpcError as error:
            raise self.problem(line, error, limit) from error

    def _answer(
        self, line: Line, method: Method, request: Any, timeout: float, login: Metadata
    ) -> Any:
        try:
            return line.calls[method](request, timeout=timeout, metadata=login)
        except ValueError:  # its channel was closed this very moment
            raise self.closed() from None
        finally:
            self._end()

    def _log_in(self, timeout: float) -> Metadata:
        line, limit = self._begin(timeout)
        try:
            request = self._login_request()
            answer = self._answer(line, AUTHENTICATE, request, limit, (LEADER,))
        except grpc.RpcError as error:
            return self._not_logged_in(line, error, limit)
        return self._logged_in(answer.token)

    def watch(self, timeout: float) -> WatchStream:
        """Open a stream of watches; there is one at a time."""
        login = self._metadata or self._log_in(timeout)
        line, _ = self._begin(timeout)
        try:
            stream = self._stream = WatchStream(self, line, login)
        finally:
            self._end()
        if self._line is not line:
            stream.cancel()  # it was left meanwhile
        return stream

    def close(self) -> None:
        """Close all channels of ours."""
        self._close_all()


class WatchStream:
    """Watches in both directions: any thread may send, one reads."""

    def __init__(self, link: Lines, line: Line, login: Metadata) -> None:
        self._link = link
        self._line = line
        self._requests: SimpleQueue[Any] = SimpleQueue()
        self._cancelled = False
        self._call = line.watch(iter(self._requests.get, None), metadata=login)

    def send(self, request: Any) -> None:
        """Send a request, without waiting."""
        self._requests.put(request)

    def read(self) -> Any:
        """Return the next response; None when no more can come."""
        try:
            return next(self._call, None)
        except grpc.RpcError as error:
            if not self._cancelled and not self._link.refused_login(error):
                self._link.failed(self._line, error)
            return None

    def cancel(self) -> None:
        """End it: `read` returns None."""
        self._cancelled = True
        self._requests.put(None)
        self._call.cancel()
