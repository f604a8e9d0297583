"""What kazoo says in its log, heard by us: the negotiated time-out, and what went wrong last."""

from __future__ import annotations

import logging
from typing import Any

_log = logging.getLogger("holdfast.zookeeper")


class Wiretap:
    """A logger for kazoo that passes everything on, warnings as information.

    That a connection was lost is told by events of leases; it is nothing to warn of by itself.
    The time-out that the server has granted kazoo tells nobody else; should it stop saying so,
    `negotiated` stays 0 and no lock is granted.
    """

    def __init__(self) -> None:
        self.negotiated = 0  # milliseconds
        self.trouble = ""  # why there is no connection, as far as known
        self.debug = _log.debug
        self.info = _log.info

    def log(self, level: int, message: str, *details: Any) -> None:
        """Hear what matters to developers of kazoo."""
        if "negotiated session timeout" in message and len(details) == 5:
            self.negotiated = int(details[2])
        _log.log(level, message, *details)

    def warning(self, message: str, *details: Any) -> None:
        """Hear why a connection ended, or could not be made."""
        if details and message.startswith(("Connection", "Cannot resolve", "AUTH_FAILED")):
            self.trouble = (message % details).strip()
        _log.info(message, *details)

    warn = warning

    def exception(self, message: str, *details: Any) -> None:
        """Hear of what kazoo did not expect."""
        _log.exception(message, *details)

    error = exception
