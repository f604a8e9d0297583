"""The requests that locks are made of, as kazoo sends them: one each, answered in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kazoo.protocol.serialization import (  # type: ignore[import-untyped]
    CheckVersion,
    Create,
    Create2,
    Delete,
    Exists,
    GetACL,
    GetChildren,
    GetData,
    Sync,
    Transaction,
)

ANY_VERSION = -1
PERSISTENT, EPHEMERAL, SEQUENTIAL, CONTAINER = 0, 1, 2, 4

Watcher = Callable[[Any], object]


class CreateContainer(Create2):  # type: ignore[misc]
    """Make a node that the servers remove once it has been empty for a while (ZooKeeper 3.5)."""

    type = 19


def create_claim(path: str, data: bytes, acl: Sequence[Any]) -> Any:
    """Make a claim's node; the answer is its path, with a number at the end, and its stat."""
    return Create2(path, data, acl, EPHEMERAL | SEQUENTIAL)


def create_folder(path: str, acl: Sequence[Any]) -> Any:
    """Make a node that stays."""
    return Create(path, b"", acl, PERSISTENT)


def create_record(path: str, acl: Sequence[Any]) -> Any:
    """Make the node of a record, which goes by itself."""
    return CreateContainer(path, b"", acl, CONTAINER)


def check(paths: Iterable[str]) -> Any:
    """Ask, as a write that changes nothing, whether all these exist.

    A majority has agreed to the answer: it is no leader's own that does not know of its end.
    """
    return Transaction([CheckVersion(path, ANY_VERSION) for path in paths])


def delete(path: str) -> Any:
    """Remove a node."""
    return Delete(path, ANY_VERSION)


def children(path: str, watcher: Watcher | None = None) -> Any:
    """List what is below a node; if it is there, tell `watcher` when that changes."""
    return GetChildren(path, watcher)


def data(path: str, watcher: Watcher | None = None) -> Any:
    """Read a node; if it is there, tell `watcher` when it goes."""
    return GetData(path, watcher)


def exists(path: str, watcher: Watcher | None = None) -> Any:
    """Look whether a node is there; the answer is its stat, or None."""
    return Exists(path, watcher)


def acl_of(path: str) -> Any:
    """Read who may do what with a node."""
    return GetACL(path)


def sync(path: str) -> Any:
    """Let the server catch up with its leader before it answers what follows."""
    return Sync(path)
