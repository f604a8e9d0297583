"""Checks of the embedded engine: who else can touch the file, and can processes hear each other?"""

from __future__ import annotations

import os
import secrets
import socket
import stat
from collections.abc import Callable, Iterator

from ..filesystems import LOCAL, filesystem_of
from .finding import Finding, Level, Patient

FILE_MODE = 0o600
FOLDER_MODE = 0o700
MANY_FILES = 10_000


def check(patient: Patient) -> Iterator[Finding]:
    """Examine the lock file, its folder, the filesystem, and the folder of sockets."""
    engine = patient.client.engine
    path = str(getattr(engine, "path", "") or engine.location.removeprefix("sqlite://"))
    yield from check_filesystem(path)
    yield from check_file(path)
    yield from check_folder(os.path.dirname(path) or ".")
    yield from check_sockets(f"{path}.d")


def check_filesystem(path: str, kind: str | None = None) -> Iterator[Finding]:
    """Only filesystems are trusted whose locks work between all processes (S33)."""
    kind = kind or filesystem_of(path)
    if kind is None:
        yield Finding(
            Level.INFO,
            "filesystem",
            f"Which filesystem {path} is on cannot be told here.",
            "Make sure that it is a local disk, not a network share.",
        )
    elif kind in LOCAL:
        yield Finding(Level.OK, "filesystem", f"{path} is on a local {kind} filesystem.")
    else:
        yield Finding(
            Level.CRITICAL,
            "filesystem",
            f"{path} is on a {kind} filesystem, where locks between processes are not reliable.",
            "Put the file on a local disk, or use an engine with a server.",
        )


def check_file(path: str) -> Iterator[Finding]:
    """Nobody else may read or write the file; it is a file, and ours."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        yield Finding(
            Level.INFO, "lock file", f"{path} is not there yet.", "It is made on first use."
        )
        return
    if not stat.S_ISREG(found.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a file"
        yield Finding(
            Level.CRITICAL,
            "lock file",
            f"{path} is {what}: whoever made it decides which file holds the locks.",
            "Name the file itself in the URL.",
        )
        return
    yield from _mode(path, "lock file", found, FILE_MODE)


def check_folder(folder: str) -> Iterator[Finding]:
    """Whoever may write to the folder may put another file in the place of ours."""
    try:
        mode = os.stat(folder).st_mode
    except FileNotFoundError:
        yield Finding(
            Level.INFO, "folder", f"{folder} is not there yet.", "It is made on first use."
        )
        return
    if mode & stat.S_IWOTH:
        sticky = bool(mode & stat.S_ISVTX)
        yield Finding(
            Level.WARNING if sticky else Level.CRITICAL,
            "folder",
            f"Everybody on this machine may write to {folder}"
            + (", though only owners may remove." if sticky else "."),
            f"Move the lock file to a folder of its own, or: chmod o-w {folder}",
            None if sticky else _chmod(folder, stat.S_IMODE(mode) & ~stat.S_IWOTH),
        )
    else:
        yield Finding(Level.OK, "folder", f"Only you and your group may write to {folder}.")
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(
            Level.CRITICAL,
            "folder",
            f"You may not write to {folder}, so SQLite cannot keep its journal beside the file.",
            "Change the folder's owner or mode, or name another file in the URL.",
        )


def check_sockets(folder: str) -> Iterator[Finding]:
    """Processes wake each other, and see each other die, by sockets in this folder."""
    if not hasattr(socket, "AF_UNIX"):
        yield Finding(
            Level.INFO,
            "sockets",
            "This platform has no sockets between processes: waiters look now and then, and the "
            "lock of a dead process is free after its TTL only.",
            "Use short TTLs where that matters.",
        )
        return
    if not os.path.isdir(folder):
        yield Finding(
            Level.INFO, "sockets", f"{folder} is not there yet.", "It is made on first use."
        )
        return
    yield from _mode(folder, "sockets", os.stat(folder), FOLDER_MODE)
    try:
        _bind_in(folder)
    except OSError as error:
        yield Finding(
            Level.WARNING,
            "sockets",
            f"No socket can be made in {folder} ({error.strerror or error}): waiters are not "
            "woken, and the lock of a dead process is free after its TTL only.",
            "Check the owner, mode and free space of that folder; containers that share the file "
            "must share the folder, too.",
        )
        return
    yield Finding(Level.OK, "sockets", f"Processes can reach each other through {folder}.")
    number = len(os.listdir(folder))
    if number > MANY_FILES:
        yield Finding(
            Level.WARNING,
            "sockets",
            f"{folder} holds {number} files, which makes every new client slow.",
            "Stop all users of the lock file, and remove that folder: it is made anew.",
        )


def _mode(path: str, title: str, found: os.stat_result, wanted: int) -> Iterator[Finding]:
    mode = stat.S_IMODE(found.st_mode)
    if hasattr(os, "getuid") and found.st_uid not in (os.getuid(), 0):
        yield Finding(
            Level.WARNING,
            title,
            f"{path} belongs to user id {found.st_uid}, not to you.",
            "Use a file of your own, unless you share locks with that user on purpose.",
        )
    if mode & ~wanted & 0o777:
        yield Finding(
            Level.WARNING,
            title,
            f"{path} has mode {mode:04o}: others can read or change your locks.",
            f"chmod {wanted:o} {path}",
            _chmod(path, wanted),
        )
    else:
        yield Finding(Level.OK, title, f"{path} has mode {mode:04o}: it is yours alone.")


def _chmod(path: str, mode: int) -> Callable[[], object]:
    return lambda: os.chmod(path, mode)


def _bind_in(folder: str) -> None:
    """Bind and remove a socket there; by a short path, since socket paths end at 108 bytes."""
    name = f"doctor-{secrets.token_hex(4)}"
    base = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        near = f"/proc/self/fd/{base}"
        place = near if os.path.isdir(near) else folder
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            probe.bind(os.path.join(place, name))
        os.unlink(os.path.join(folder, name))
    finally:
        os.close(base)
