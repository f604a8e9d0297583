"""Locks between the processes of one host, by files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ..contestant import Contestant, insisting
from ..handle import PATIENCE, Handle
from .tooz_ones import Tooz


class _OnFile(Contestant):
    """A file for each name."""

    lacks = "no token, no TTL, no queue"

    def path(self, key: str) -> str:
        """Return the file of a name."""
        return str(Path(self.place.folder) / f"{self.package}-{key.replace('/', '-')}")


class Filelock(_OnFile):
    """filelock: it looks every 0.05 s."""

    name = "filelock"
    package = "filelock"

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        lock = import_module("filelock").FileLock(self.path(key), timeout=PATIENCE)
        return Handle(lock.acquire, lock.release)


class Portalocker(_OnFile):
    """portalocker: it looks every 0.25 s."""

    name = "portalocker"
    package = "portalocker"

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        module = import_module("portalocker")
        flags = module.LockFlags.EXCLUSIVE | module.LockFlags.NON_BLOCKING
        lock = module.Lock(self.path(key), timeout=PATIENCE, flags=flags)
        return Handle(lock.acquire, lock.release)


class SherlockFile(_OnFile):
    """sherlock on files: it looks every 0.1 s."""

    name = "sherlock"
    package = "sherlock"
    lacks = "no token, no queue"

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        lock = import_module("sherlock").FileLock(
            key.replace("/", "-"),
            client=Path(self.place.folder) / "sherlock",
            expire=self.ttl,
            timeout=PATIENCE,
            retry_interval=0.1,
        )
        return Handle(insisting(lock.acquire), lock.release)


class ToozFile(Tooz):
    """tooz on files."""

    lacks = _OnFile.lacks
    scheme = "file://{folder}/tooz"
