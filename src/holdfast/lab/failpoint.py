"""Failpoints: the places of the workload where orders of the lab hurt most, and what they do."""

from __future__ import annotations

import ctypes
import os
import signal
import time
import warnings
from collections.abc import Callable

from ..clocks import boot_clock
from .assignment import ASYNC, Assignment
from .diary import Diary
from .hands import Lease
from .orders import BLOCK, FORK, STAND_STILL, Order, Orders

LOOK = 0.02  # seconds between the looks of a forked child


class Failpoint:
    """Obeys orders; a holder's lease makes them matter."""

    def __init__(self, assignment: Assignment, diary: Diary, orders: Orders) -> None:
        self._assignment, self._diary, self._orders = assignment, diary, orders
        self._children: list[int] = []
        self._waiting: list[Order] = []  # for a lease
        self._does: dict[str, Callable[[Order, Lease], None]] = {
            STAND_STILL: self._stand_still,
            BLOCK: self._block,
            FORK: self._fork,
        }

    def listen(self) -> None:
        """Hear what is wanted, and keep it for the next holder."""
        self._waiting.extend(self._orders.poll())

    @property
    def wanted(self) -> bool:
        """Whether the next holder has something to obey."""
        self.listen()
        return bool(self._waiting)

    def pass_at(self, where: str, lease: Lease) -> None:
        """Pass this point as a holder."""
        if self.wanted and self._waiting[0]["where"] == where:
            order = self._waiting.pop(0)
            self._does[order["do"]](order, lease)

    def reap(self) -> None:
        """Wait for forked children."""
        for pid in self._children:
            os.waitpid(pid, 0)

    def _stand_still(self, order: Order, lease: Lease) -> None:
        """Stop this process, until the lab lets it go on; not if it has given up on us."""
        if boot_clock() > order["until"]:
            return
        self._diary.note("stopped", token=lease.token)
        os.kill(os.getpid(), signal.SIGSTOP)

    def _block(self, order: Order, lease: Lease) -> None:
        """Let nothing else run here: the event loop, or every thread, as garbage collection may."""
        seconds = order["seconds"]
        self._diary.note("blocked", token=lease.token, seconds=seconds)
        block(self._assignment.colour, seconds)
        self._diary.note("unblocked", token=lease.token)

    def _fork(self, order: Order, lease: Lease) -> None:
        """Fork; the child looks at the lease that it inherited."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads: that is the point
            pid = os.fork()
        if pid:
            self._children.append(pid)
            return
        try:
            diary = Diary(self._assignment.home, f"{self._diary.name}-fork-{os.getpid()}")
            end = boot_clock() + order["seconds"]
            while boot_clock() < end:
                at = boot_clock()
                diary.note("look", at=at, owner=lease.owner, token=lease.token, held=lease.held)
                time.sleep(LOOK)
        finally:
            os._exit(0)


def block(colour: str, seconds: float) -> None:
    """Keep the event loop, or in a sync client every thread, from doing anything."""
    if colour == ASYNC:
        time.sleep(seconds)
    else:  # a C function that does not let go of the interpreter's lock
        ctypes.PyDLL(None).poll(None, 0, int(seconds * 1000))
