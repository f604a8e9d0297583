"""What can go wrong with a test server."""

from __future__ import annotations


class ServerMissing(Exception):
    """A program is not installed; one sentence says how to install it."""


class ServerFailed(Exception):
    """A server did not start, or ended by itself; the end of its log is in the message."""


class CommandRefused(Exception):
    """A server answered a command with an error."""
