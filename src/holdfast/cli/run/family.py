"""The command and all that came of it: signals to its group, and reaping (needs a subreaper)."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

LAST_WAIT = 10.0  # seconds for descendants that do not die of KILL, which is the kernel's trouble


class Family:
    """The child's process group, and descendants that left it."""

    def __init__(self, child: int) -> None:
        self.child = child
        self.status: int | None = None  # of the child, once it is reaped

    def signal(self, number: int) -> None:
        """Send a signal to the group, as long as its leader is there or not yet reaped."""
        if self.status is None:
            with suppress(OSError):
                os.killpg(self.child, number)

    def reap(self) -> int | None:
        """Reap who has ended; return the signal that has just stopped the child, if any."""
        stopped = None
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                self.status = 0 if self.status is None else self.status  # reaped by another
                return stopped
            if pid == 0:
                return stopped
            if pid != self.child:
                continue  # a descendant without parents, adopted by us
            if os.WIFSTOPPED(status):
                stopped = os.WSTOPSIG(status)
            else:
                stopped, self.status = None, status

    def end(self) -> None:
        """Kill the child unless it is reaped, and reap it."""
        self.signal(signal.SIGKILL)
        while self.status is None:
            self.reap()
            time.sleep(0.001)

    def kill_descendants(self) -> None:
        """Kill what is left after the child: orphans are adopted by us until none is left."""
        if not os.path.isdir("/proc/self"):  # nobody is adopted: the group is all we know
            with suppress(OSError):
                os.killpg(self.child, signal.SIGKILL)
            return
        end = time.monotonic() + LAST_WAIT
        pause = 0.001
        while time.monotonic() < end:
            self.reap()
            orphans = _children()
            if not orphans:
                return
            for pid in orphans:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(pause)
            pause = min(2 * pause, 0.05)


def _children() -> list[int]:
    """Return the children of this process, as far as the platform tells."""
    pids = map(int, filter(str.isdigit, os.listdir("/proc")))
    own = str(os.getpid()).encode()
    return [pid for pid in pids if _status(pid)[1] == own]


def has_ended(pid: int) -> bool:
    """Say whether a process has ended, reaped or not; where that cannot be told, yes."""
    return _status(pid)[0] in (b"", b"Z", b"X")


def _status(pid: int) -> tuple[bytes, bytes]:
    """Return the state of a process and its parent; empty if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in brackets may contain anything, brackets too.
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return b"", b""
    return state, parent
