"""A line: one channel to one member of a cluster, and what every link does with its lines.

Rule 1: a line on which a request had no answer takes no more (S1); the next one leads to another
        member, of those that were silent the one for which that is longest ago. Others who wait
        for answers on it still get them: it is closed when nobody can be.
Rule 2: a request is sent once; only one that was refused for want of a login is sent again.
Rule 3: nothing is under way while the process forks (`forking`): gRPC goes on in the child where it
        was in the parent, on stacks of threads that are not there any more, and crashes.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import grpc

from ..errors import EngineUnavailable
from .forking import hear_of_forks, keep_running
from .messages import AuthenticateRequest
from .settings import Settings, channel_arguments
from .wire import (
    CALLS,
    LEADER,
    TOKEN,
    WATCH,
    Metadata,
    Method,
    details_of,
    in_doubt,
    needs_no_login,
    timed_out,
    translate,
    wants_login,
)

LEAST = 0.1  # seconds for an answer, however little its caller has: less is no answer at all
STILL = 2.0  # seconds that a fork waits for answers under way


def pack(request: Any) -> bytes:
    """Return a message as bytes, which it may be already."""
    packed: bytes = request if isinstance(request, bytes) else request.SerializeToString()
    return packed


class Line:
    """One channel, with all calls made ready."""

    __slots__ = ("busy_until", "calls", "channel", "endpoint", "ours", "watch")

    def __init__(self, settings: Settings, endpoint: str) -> None:
        self.endpoint = endpoint
        self.ours = settings.channel is None
        self.busy_until = 0.0  # by time.monotonic(): nobody waits for an answer after this
        options = channel_arguments(settings)
        if settings.channel is not None:
            self.channel = settings.channel
        elif settings.tls is not None:
            self.channel = grpc.secure_channel(endpoint, settings.tls, options=options)
        else:
            self.channel = grpc.insecure_channel(endpoint, options=options)
        self.calls: dict[Method, Any] = {
            method: self.channel.unary_unary(
                method.path,
                request_serializer=pack,
                response_deserializer=method.response.FromString,
            )
            for method in CALLS
        }
        self.watch: Any = self.channel.stream_stream(
            WATCH.path,
            request_serializer=WATCH.request.SerializeToString,
            response_deserializer=WATCH.response.FromString,
        )


class Lines:
    """Which member is talked to now, how often, and the lines that were left."""

    def __init__(self, settings: Settings) -> None:
        if settings.channel is not None and not isinstance(settings.channel, grpc.Channel):
            raise TypeError(
                "The channel must be one of grpc.insecure_channel() or grpc.secure_channel(), also "
                "for holdfast.aio; those of grpc.aio do not survive a fork."
            )
        self.settings = settings
        self.on_failure: Callable[[str, str], None] = lambda endpoint, error: None
        # What every request carries; None = log in first.
        self._metadata: Metadata | None = None if settings.username is not None else (LEADER,)
        self._closed = False
        self._at = 0  # the number of the member that is talked to
        self._silent_at = [-math.inf] * len(settings.endpoints)  # when they last gave no answer
        self._forked = False
        self._start_over()
        hear_of_forks(self)

    def _start_over(self) -> None:
        self._change = threading.Condition(threading.Lock())
        self._line: Line | None = None
        self._left: list[Line] = []
        self._under_way = 0  # requests without an answer yet
        self._still = False  # nothing may begin: the process is forking
        self._stream: Any = None  # the present stream of watches

    # --- Each request. ---

    def _begin(self, timeout: float) -> tuple[Line, float]:
        """Return the line for a request, and how long to wait for its answer; `_end` follows."""
        timeout = max(timeout, LEAST)
        unused: list[Line] = []
        with self._change:
            while self._still:
                self._change.wait(STILL)
            line = self._line
            if line is None:
                line, unused = self._open()
            self._under_way += 1
            line.busy_until = max(line.busy_until, time.monotonic() + timeout)
        for one in unused:
            one.channel.close()
        return line, timeout

    def _end(self) -> None:
        """Take note that a request has its answer, or none."""
        with self._change:
            self._under_way -= 1
            if self._still:
                self._change.notify_all()

    def _open(self) -> tuple[Line, list[Line]]:
        """Make the line to use now; return it, and those that nobody uses any more."""
        where = self.settings.location
        if self._closed:
            raise self.closed()
        if self._forked and self.settings.channel is not None:
            raise EngineUnavailable(
                "The channel that was given belongs to the parent process; connect anew, with a "
                "channel of this one.",
                engine=where,
            )
        keep_running()
        line = self._line = Line(self.settings, self.settings.endpoints[self._at])
        now = time.monotonic()
        unused = [one for one in self._left if one.busy_until < now]
        self._left = [one for one in self._left if one not in unused]
        return line, unused

    def failed(self, line: Line, error: grpc.RpcError) -> None:
        """Leave a line, and its watches, if the error says that it is in trouble."""
        if not in_doubt(error):
            return
        with self._change:
            current, stream = self._line is line, None
            if current and line.ours:
                self._line, stream = None, self._stream
                self._left.append(line)
                if timed_out(error):
                    self._silent_at[self._at] = time.monotonic()
                count = len(self._silent_at)
                others = [(self._at + step) % count for step in range(1, count + 1)]
                self._at = min(others, key=lambda number: self._silent_at[number])
        if stream is not None:
            stream.cancel()
        if current:
            self.on_failure(line.endpoint, details_of(error))

    def closed(self) -> EngineUnavailable:
        """Return what to raise where there is no channel any more."""
        where = self.settings.location
        return EngineUnavailable(f"The client of {where} was closed.", engine=where)

    def problem(self, line: Line, error: grpc.RpcError, timeout: float) -> Exception:
        """Return what to raise for a request that failed."""
        self.failed(line, error)
        return translate(self.settings, line.endpoint, error, timeout)

    # --- Logging in. ---

    def _login_request(self) -> Any:
        settings = self.settings
        return AuthenticateRequest(name=settings.username, password=settings.password)

    def _logged_in(self, token: str) -> Metadata:
        self._metadata = (LEADER, (TOKEN, token))
        return self._metadata

    def _not_logged_in(self, line: Line, error: grpc.RpcError, timeout: float) -> Metadata:
        if not needs_no_login(error):
            problem = self.problem(line, error, timeout)
            raise EngineUnavailable(str(problem), engine=self.settings.location) from None
        self._metadata = (LEADER,)
        return self._metadata

    def refused_login(self, error: grpc.RpcError) -> bool:
        """Say whether it is worth logging in again, and see to it that this is done."""
        if self.settings.username is None or not wants_login(error):
            return False
        self._metadata = None
        return True

    # --- Forks, and the end. ---

    def hold_still(self) -> None:
        """Let what is under way come to its end, and close everything; nothing begins any more."""
        end = time.monotonic() + STILL
        with self._change:
            self._still = True
            stream = self._stream
        if stream is not None:
            stream.cancel()
        with self._change:
            while self._under_way > 0 and time.monotonic() < end:
                self._change.wait(end - time.monotonic())
            lines = self._take_all()
        for line in lines:
            line.channel.close()

    def go_on(self) -> None:
        """Let requests begin again."""
        with self._change:
            self._still = False
            self._change.notify_all()

    def abandon(self) -> None:
        """In a forked child: nothing of this is ours."""
        self._forked = True
        if self.settings.username is not None:
            self._metadata = None
        self._start_over()

    def _take_all(self) -> list[Line]:
        lines = [*self._left, *([self._line] if self._line is not None else [])]
        self._left, self._line = [], None
        return [line for line in lines if line.ours]

    def _close_all(self) -> None:
        with self._change:
            self._closed = True
            lines, stream = self._take_all(), self._stream
        if stream is not None:
            stream.cancel()
        for line in lines:
            line.channel.close()
