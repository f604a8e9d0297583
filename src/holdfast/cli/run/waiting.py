"""Waiting for the lock until it comes, the time is over, or the front wants to leave."""

from __future__ import annotations

import logging
import os
import select
import signal

from ... import Client, Lease, Lock, events
from ...errors import EngineUnavailable
from ..base import NOT_ACQUIRED, say
from .channel import Channel


class Interrupted(BaseException):
    """The front has something to say, or is gone."""


class Waiting:
    """One wait. Whatever the front says meanwhile means that it wants to leave."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._interruptible = False

    def acquire(self, client: Client, lock: Lock, timeout: float | None) -> Lease | int:
        """Return the lease, or the exit code if there is none."""
        signal.signal(signal.SIGIO, self._interrupt)
        stop_telling = client.listen(_tell) if os.isatty(2) else None
        lease: Lease | None = None
        try:
            self._interruptible = True
            self._channel.signal_news(True)
            if select.select([self._channel.fileno()], [], [], 0)[0]:
                self._interrupt()  # it spoke before its words could raise a signal
            lease = lock.acquire(timeout=-1 if timeout is None else timeout)
            self._interruptible = False
        except Interrupted:
            if lease is not None:  # it came at the same instant
                lease.release()
            return self._leave()
        except EngineUnavailable:
            # Nothing is held; that withdrawing the question had no answer either is no news.
            logging.getLogger("holdfast").disabled = True
            raise
        finally:
            self._interruptible = False
            self._channel.signal_news(False)
            if stop_telling:
                stop_telling()
        if lease is None:
            say(lock._refusal())
            return NOT_ACQUIRED
        return lease

    def _interrupt(self, *_: object) -> None:
        if self._interruptible:
            self._interruptible = False  # once
            raise Interrupted

    def _leave(self) -> int:
        """Return the exit code for a signal that came before the lock did."""
        said = [message["signal"] for message in self._channel.receive() if "signal" in message]
        return 128 + int(said[0] if said else signal.SIGKILL)


def _tell(event: events.Event) -> None:
    if isinstance(event, events.Waiting):
        holder = f", which {event.holder} holds" if event.holder else ""
        say(f"Waiting for {event.name!r}{holder}; Ctrl-C gives up.")
