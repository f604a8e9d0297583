"""Where a lock file may lie: the default place, and filesystems that all processes see alike."""

from __future__ import annotations

import os
import re
import sys

from .errors import NotSupported

# Local ones, on which locks of the file and its shared memory work between processes (S33).
LOCAL = frozenset(
    {
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "reiserfs", "bcachefs", "zfs"),
        *("tmpfs", "ramfs", "overlay"),
        *("apfs", "hfs", "ufs"),
    }
)


_ESCAPED = re.compile(r"\\([0-7]{3})")  # how the table writes a space in a path


def default_path() -> str:
    """Return the lock file of this user: in the state directory, by the platform's convention."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Application Support")
    else:
        base = os.environ.get("XDG_STATE_HOME") or ""
        if not os.path.isabs(base):  # the convention: a relative one is invalid
            base = os.path.expanduser("~/.local/state")
    return os.path.join(base, "holdfast", "locks.db")


def filesystem_of(path: str, table: str = "/proc/self/mountinfo") -> str | None:
    """Return the type of the filesystem that `path` is or would be on; None if unknown."""
    path = os.path.realpath(path)
    best, kind = "", None
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                before, _, after = line.partition(" - ")
                point = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), before.split(" ")[4])
                inside = path == point or path.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, after.split(" ")[0]
    except (OSError, IndexError):
        return None
    return kind


def refuse_shared_filesystem(path: str) -> None:
    """Raise NotSupported if `path` is on a filesystem that other hosts may share."""
    kind = filesystem_of(path)
    if kind is not None and kind not in LOCAL:
        raise NotSupported(
            f"The lock file {path} is on a {kind} filesystem, where locks between processes are "
            "not reliable: put it on a local disk, or use an engine with a server "
            "(connect(any_filesystem=True) takes the risk).",
            engine=f"sqlite://{path}",
        )


def identity(path: str) -> tuple[int, int] | None:
    """Return what tells this file from another one under the same path; None if there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def boot_identity() -> str:
    """Return what stands for this boot and this process's view of its clock."""
    parts = []
    for source in ("/proc/sys/kernel/random/boot_id",):
        try:
            with open(source, encoding="ascii") as file:
                parts.append(file.read().strip()[:18])
        except OSError:
            parts.append("?")
    try:  # containers may see another boot clock than the host
        parts.append(str(os.stat("/proc/self/ns/time").st_ino))
    except OSError:
        parts.append("0")
    return "/".join(parts)
