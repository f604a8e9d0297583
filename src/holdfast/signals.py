"""Giving up locks on SIGTERM: Python's own default kills the process without a word."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn


def release_on_sigterm() -> bool:
    """Let SIGTERM end this program as Ctrl-C does, so that held locks are released and not left
    to their TTL; call it once, in the main thread.

    Blocks are left, clients are closed at exit, the exit code is 143. A handler that is already
    installed is left alone (servers and event loops bring their own): then this returns False.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return False
    signal.signal(signal.SIGTERM, _leave)
    return True


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
