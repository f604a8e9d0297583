"""A file and the fence beside it, as a store that compares and sets: blocking, for both colours.

Rule 1: `report.json.fence` is the truth. It is replaced whole and durably, and whoever replaces it
        holds flock on `report.json.fence.lock`, for as long as that takes and no longer.
Rule 2: new data is first written beside, durably, under the number of its write. Replacing the
        fence, which says that number, commits it; renaming it into place only carries that out.
Rule 3: whoever finds committed data still beside renames it first (its writer was killed there).
Rule 4: so a crash at any point leaves the old file or the new one, and never a lower floor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..errors import InProgress, NotSupported, OutcomeUnknown
from .store_state import parse

PAUSE = 0.001  # between two looks at a lock that another has, at first
LONGEST_PAUSE = 0.05

READ_AND_WRITE, ALL_BITS = 0o666, 0o7777  # of a file's mode


class Disk:
    """One file: its data, its fence, and what is on the way to be its data."""

    def __init__(self, path: str | os.PathLike[str], name: str | None, timeout: float) -> None:
        self.name = os.fspath(path) if name is None else name
        self._path = os.path.realpath(path)  # the fence belongs to the file, not to a link
        self._folder = os.path.dirname(self._path)
        self._fence = f"{self._path}.fence"
        self._timeout = timeout

    def load(self) -> tuple[bytes | None, str | None, str | None]:
        """Return the data, the fence and the version: the fence changes with every save."""
        with self._translated("read"), self._locked():
            fence = self._settled()
            return _read(self._path), fence, fence

    def save(self, data: bytes | None, fence: str, version: str | None) -> bool:
        """Replace the fence, and the data if this is a new write; False if the version moved."""
        with self._translated("replaced"), self._locked():
            if self._settled() != version:
                return False
            writes = parse(self.name, fence).writes
            staged = None
            try:
                if data is not None and writes != parse(self.name, version).writes:
                    staged = self._staged(writes)
                    self._write(staged, data, ALL_BITS)
                    self._sync_folder()
                self._write(f"{self._fence}.new", f"{fence}\n".encode("ascii"))
            except BaseException:
                _remove(staged)
                _remove(f"{self._fence}.new")
                raise
            self._commit(staged)
            return True

    # --- Inside. ---

    def _settled(self) -> str | None:
        """Return the fence, once the data that it speaks of is in place."""
        text = _read(self._fence)
        if text is None:
            return None
        fence = text.decode("utf-8", "replace").rstrip("\n")
        staged = self._staged(parse(self.name, fence).writes)
        if os.path.exists(staged):
            os.replace(staged, self._path)
            self._sync_folder()
        return fence

    def _staged(self, writes: int) -> str:
        return f"{self._fence}.{writes}"

    def _commit(self, staged: str | None) -> None:
        """Let the new fence be the fence, and put the data in its place."""
        try:
            os.replace(f"{self._fence}.new", self._fence)
            self._sync_folder()
            if staged is not None:
                os.replace(staged, self._path)
                self._sync_folder()
        except OSError as error:
            raise OutcomeUnknown(
                f"{self.name!r} may or may not have been replaced ({error}): look at it before "
                "you do the work again.",
                name=self.name,
            ) from error

    def _write(self, path: str, content: bytes, bits: int = READ_AND_WRITE) -> None:
        """Write a new file durably, with the owner and the mode of the one that is guarded."""
        _remove(path)  # of somebody who was killed
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path, flags, READ_AND_WRITE)
        try:
            self._imitate(descriptor, bits)
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _imitate(self, descriptor: int, bits: int) -> None:
        """Take over these bits of the guarded file's mode, and its owner as far as permitted."""
        try:
            model = os.stat(self._path)
        except FileNotFoundError:
            return
        own = os.fstat(descriptor)
        if (own.st_uid, own.st_gid) != (model.st_uid, model.st_gid):
            try:
                os.fchown(descriptor, model.st_uid, model.st_gid)
            except PermissionError:  # only root may give a file away; its group is worth a try
                with suppress(PermissionError):
                    os.fchown(descriptor, -1, model.st_gid)
        os.fchmod(descriptor, model.st_mode & bits)

    def _sync_folder(self) -> None:
        """Make names durable: a file's own fsync says nothing of them."""
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock file, which is never replaced nor removed: flock is bound to the file."""
        try:
            import fcntl
        except ImportError:
            raise NotSupported(
                f"{self.name!r} cannot be guarded: this system has no flock.", name=self.name
            ) from None
        descriptor = self._lock_file()
        try:
            end, pause = time.monotonic() + self._timeout, PAUSE
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise InProgress(
                            f"Another process has been in the middle of replacing {self.name!r} "
                            f"for {self._timeout:g} s: it may be stopped. Nothing was touched; "
                            "try again.",
                            name=self.name,
                        ) from None
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            try:
                yield
            finally:
                # Closing alone would leave it locked if another thread has forked meanwhile.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def _lock_file(self) -> int:
        path, flags = f"{self._fence}.lock", os.O_RDONLY | os.O_CLOEXEC
        while True:
            try:
                return os.open(path, flags)
            except FileNotFoundError:
                pass
            try:
                descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, READ_AND_WRITE)
            except FileExistsError:
                continue  # another was quicker
            self._imitate(descriptor, READ_AND_WRITE)
            return descriptor

    @contextmanager
    def _translated(self, done: str) -> Iterator[None]:
        """Let what the system says be a sentence that names the file."""
        try:
            yield
        except OSError as error:
            raise type(error)(
                error.errno,
                f"The guarded file {self.name!r} could not be {done}: {error.strerror} "
                f"({error.filename or self._folder}). It is as it was; its folder must be "
                "writable and have room for a second copy.",
            ) from error


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _remove(path: str | None) -> None:
    try:
        if path is not None:
            os.unlink(path)
    except FileNotFoundError:
        pass
