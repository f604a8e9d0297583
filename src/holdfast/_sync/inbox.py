"""(Generated from _async/inbox.py by tools/unasync.py: do not edit.) The inbox of an engine: grants that were pushed to owners who wait in this client.

Rule 1: an owner is expected before its claim is sent, so no push can come too early.
Rule 2: a push for an owner that is not expected is refused: the sender passes the lock on (S6).
Rule 3: `deliver` may be called from any thread and never blocks.
"""

from __future__ import annotations

from .._concurrency import Signal, Mutex
from ..model import Grant

NUDGE = Grant(0, 0.0)  # stands for "look again"


class Inbox:
    """Pushed grants by owner."""

    def __init__(self) -> None:
        self._mutex = Mutex()
        self.slots: dict[str, Grant | Signal | None] = {}
        self._closed = False

    def expect(self, owner: str) -> None:
        """Accept pushes for this owner from now on."""
        self.slots[owner] = None

    def forget(self, owner: str) -> None:
        """Accept no more pushes for this owner."""
        self.slots.pop(owner, None)

    def deliver(self, owner: str, grant: Grant) -> bool:
        """Hand a grant to its waiter; False if there is none."""
        with self._mutex:
            if owner not in self.slots or self._closed:
                return False
            event = self.slots[owner]
            self.slots[owner] = grant  # also over a nudge: it says more
        if isinstance(event, Signal):
            event.set()
        return True

    def nudge(self, owner: str) -> None:
        """Let this owner's wait end without a grant: it is worth asking again."""
        with self._mutex:
            event = self.slots.get(owner)
            if owner in self.slots and not isinstance(event, Grant):
                self.slots[owner] = NUDGE
        if isinstance(event, Signal):
            event.set()

    def wait(self, owner: str, timeout: float) -> Grant | None:
        """Wait for this owner's grant; None when the time is over or the inbox closes."""
        event = Signal()
        with self._mutex:
            slot = self.slots.get(owner)
            if isinstance(slot, Grant):
                self.slots[owner] = None
                return slot if slot is not NUDGE else None
            if self._closed:
                return None
            self.slots[owner] = event
        try:
            event.wait(timeout)
        finally:
            with self._mutex:
                slot = self.slots.get(owner)
                if slot is event:
                    self.slots[owner] = None
        if isinstance(slot, Grant):
            self.slots[owner] = None
            return slot if slot is not NUDGE else None
        return None

    def close(self) -> None:
        """Wake everybody who waits; refuse what comes later."""
        with self._mutex:
            self._closed = True
            slots = list(self.slots.values())
        for slot in slots:
            if isinstance(slot, Signal):
                slot.set()
