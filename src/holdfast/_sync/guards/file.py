"""(Generated from _async/guards/file.py by tools/unasync.py: do not edit.) A guard for a file: replaced whole, with the tokens it has seen in a second file beside it (S23).

The file work is short (a few small writes and fsync) and is done where it stands: in a coroutine it
blocks the event loop for that long. No lock is held over the caller's own work.
"""

from __future__ import annotations

import os
from typing import Any

from ...fencing import check_domain, fence_of
from ...guards.file_disk import Disk
from .guard import Guard
from .store_item import Item, Record, adopt


class File(Item[bytes | None]):
    """One transaction on a file."""

    def write(self, data: bytes | None) -> None:
        """Replace the file when the `with` is left; StaleToken then, if a newer token has come."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(
                f"{self.resource!r} takes bytes, not {type(data).__name__}: encode what you write."
            )
        super().write(bytes(data))


class FileGuard(Guard):
    """Guards one file, between the processes of one host.

    A symbolic link is followed when the guard is made. `name` is what errors and events call it; by
    default the path. `timeout` is how long to wait for another process that is in the middle of
    replacing the file, which takes milliseconds unless that process was stopped there: then
    InProgress.
    """

    kind = "file"

    def __init__(
        self, path: str | os.PathLike[str], *, name: str | None = None, timeout: float = 10.0
    ) -> None:
        super().__init__()
        self._disk = Disk(path, name, timeout)

    def transaction(self, lease: Any) -> File:
        """Return a transaction to enter: it records the token, and replaces the file if you write.

        `lease` is a lease or a Fence. `read()` gives the bytes of the file, None if there is none.
        StaleToken, and nothing is replaced, if the file has seen a newer token, when it is
        entered or when it is left.
        """
        return File(self, self._record(), fence_of(lease))

    def adopt(self, domain: str) -> None:
        """Let tokens of another domain fence it from now on; call it while nobody writes."""
        adopt(self, self._record(), check_domain(domain))

    def _record(self) -> Record[bytes | None]:
        return Record(self._disk.name, self._load, self._save)

    def _load(self, resource: str) -> tuple[bytes | None, str | None, Any]:
        return self._disk.load()

    def _save(self, resource: str, data: bytes | None, fence: str, version: Any) -> bool:
        return self._disk.save(data, fence, version)
