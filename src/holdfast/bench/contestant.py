"""A contestant: somebody's lock on one engine, ours and the bare floor included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import ClassVar, NamedTuple

from .handle import Handle, NotHeld

TTL = 30.0  # seconds

LONGEST = 160  # characters of what others say

OURS, FLOOR, PEER = "ours", "floor", "peer"


class Place(NamedTuple):
    """Where the locks of one engine are: its URL, its servers, a folder for files."""

    engine: str
    url: str
    addresses: tuple[str, ...] = ()
    folder: str = ""


class Contestant:
    """Subclass it, say what it is, and make handles; what is opened is closed with the stack.

    A contestant that cannot run raises, in `__init__` or later; its row says why.
    """

    name: ClassVar[str] = ""
    role: ClassVar[str] = PEER
    package: ClassVar[str] = ""  # the distribution whose version counts
    lacks: ClassVar[str] = ""  # what it does not promise, which ours does
    waits: ClassVar[bool] = True  # whether it can be waited for
    per_process: ClassVar[bool] = False  # whether it works inside one process only

    def __init__(self, stack: ExitStack, place: Place, ttl: float = TTL) -> None:
        self.stack, self.place, self.ttl = stack, place, ttl
        self.open()

    def open(self) -> None:
        """Connect."""

    def lock(self, key: str) -> Handle:
        """Return a lock of this name, for one thread at a time."""
        raise NotImplementedError

    def modes(self, key: str) -> tuple[Handle, Handle]:
        """Return a lock of this name for reading, and the same one for writing."""
        raise NotImplementedError(f"{self.name} has no read-write lock")


def why_not(error: Exception) -> str:
    """Return what to say of a contestant that raised this."""
    if isinstance(error, ModuleNotFoundError):
        return f"is not installed here ({error.name})"
    text = str(error).splitlines()[0] if str(error).strip() else "it said nothing more"
    return f"failed: {type(error).__name__}: {text[:LONGEST]}"


def insisting(acquire: Callable[[], object]) -> Callable[[], object]:
    """Return a function that raises where `acquire` answers that it has not got the lock."""

    def acquired() -> object:
        got = acquire()
        if not got:
            raise NotHeld
        return got

    return acquired


def host_and_port(address: str) -> tuple[str, int]:
    """Return both halves of an address."""
    host, _, port = address.rpartition(":")
    return host, int(port)


def by_name(classes: Sequence[type[Contestant]]) -> dict[str, type[Contestant]]:
    """Return contestants by their names."""
    return {one.name: one for one in classes}
