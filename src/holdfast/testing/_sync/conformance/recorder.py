"""(Generated from _async/conformance/recorder.py by tools/unasync.py: do not edit.) The recorder: hears every event of a client, and waits for the ones a test expects."""

from __future__ import annotations

import time
from typing import TypeVar

import holdfast

from ...._concurrency import Bell
from ....events import Event, NodeAnswered

V = TypeVar("V", bound=Event)


class Recorder:
    """All events of one client since it was made, but for the mere signs of life of servers."""

    def __init__(self, client: holdfast.Client, patience: float) -> None:
        self._patience = patience
        self.events: list[Event] = []
        self._bell = Bell()
        self.stop = client.listen(self._hear)

    def _hear(self, event: Event) -> None:
        if not isinstance(event, NodeAnswered):
            self.events.append(event)
            self._bell.ring()

    def kinds(self) -> list[str]:
        """Return the names of what happened, in order."""
        return [type(event).__name__ for event in self.events]

    def until(self, kind: type[V], count: int = 1) -> list[V]:
        """Wait until `count` events of this kind have happened, and return them."""
        end = time.monotonic() + self._patience
        while True:
            found = [event for event in self.events if isinstance(event, kind)]
            if len(found) >= count:
                return found
            left = end - time.monotonic()
            heard = ", ".join(self.kinds()) or "nothing"
            assert left > 0, f"waited in vain for {kind.__name__} number {count}; heard: {heard}"
            self._bell.wait(left)
