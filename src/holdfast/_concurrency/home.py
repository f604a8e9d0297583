"""What a client belongs to, an event loop or a process, and what it hears of that."""

from __future__ import annotations

import asyncio
import atexit
import os
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from .loops import call_threadsafe

EXIT_PATIENCE = 2.0  # how long the exit of the interpreter waits for releases


class Forkable(Protocol):
    """Hears in the child that its process was forked."""

    def after_fork(self) -> None:
        """Forget threads, sockets and leases: they are the parent's."""


class Closable(Protocol):
    """Gives back what is held."""

    def close(self, timeout: float) -> object:
        """Release and stop within `timeout` seconds."""


_forkable: weakref.WeakSet[Any] = weakref.WeakSet()
_closable: weakref.WeakSet[Any] = weakref.WeakSet()


def hear_of_fork(thing: Forkable) -> None:
    """Call `thing.after_fork()` in every child of this process, as long as it lives."""
    _forkable.add(thing)


def _after_fork() -> None:
    for thing in list(_forkable):
        thing.after_fork()


def _at_exit() -> None:
    for client in list(_closable):
        client.close(timeout=EXIT_PATIENCE)


class AsyncHome:
    """The event loop: an async client is used on one, and not after a fork."""

    survives_fork = False
    hint = "make one client per event loop, inside it, and close it there"

    @staticmethod
    def here() -> object:
        """Return where the caller is."""
        return asyncio.get_running_loop()

    @staticmethod
    def post(home: object, function: Callable[..., object], *args: object) -> None:
        """Call `function` at home soon, from whatever thread."""
        if isinstance(home, asyncio.AbstractEventLoop):
            call_threadsafe(home, function, *args)

    @staticmethod
    def close_at_exit(client: Closable) -> None:
        """Do nothing: at exit the loop is gone; `async with` closes in time."""


class Home:
    """Every thread of the process, and of its children after a fork."""

    survives_fork = True
    hint = "make a new client"

    @staticmethod
    def here() -> object:
        """Return where the caller is: at home, always."""
        return None

    @staticmethod
    def post(home: object, function: Callable[..., object], *args: object) -> None:
        """Call `function` right here."""
        function(*args)

    @staticmethod
    def close_at_exit(client: Closable) -> None:
        """Close the client when the interpreter exits."""
        _closable.add(client)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
