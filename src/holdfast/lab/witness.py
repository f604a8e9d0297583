"""The witness: asks the engine now and then who holds what, and writes it down."""

from __future__ import annotations

import threading
import time

from .. import Client, connect
from ..clocks import boot_clock
from ..errors import LockError
from ..model import Guarantees
from .assignment import NAMESPACE
from .diary import Diary

INTERVAL = 0.15  # seconds
PATIENCE = 0.5


class Witness:
    """A client of the lab's own, that only looks."""

    def __init__(self, url: str, ttl: float, diary: Diary) -> None:
        self._diary = diary
        self._client: Client = connect(url, namespace=NAMESPACE, ttl=ttl, connect_timeout=PATIENCE)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lab-witness", daemon=True)

    @property
    def guarantees(self) -> Guarantees:
        """What the engine promises."""
        return self._client.guarantees

    def start(self) -> None:
        """Look until `close`."""
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(INTERVAL):
            self.look()

    def look(self) -> list[str] | None:
        """Write down who holds; return who does or waits, None if the engine did not say."""
        at = boot_clock()
        try:
            shots = self._client.locks()
        except (LockError, OSError):
            return None
        for shot in shots:
            for entry in shot.holders:
                self._diary.note(
                    "seen", at=at, lock=shot.name, token=entry.token, label=entry.label
                )
        return [f"{entry.name} of {entry.label}" for s in shots for entry in s.holders + s.waiters]

    def rest(self) -> None:
        """Look no more by itself."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def wait_for_silence(self, seconds: float) -> list[str]:
        """Wait until nobody holds or waits; return who still does after that time."""
        end = time.monotonic() + seconds
        while True:
            found = self.look()
            if found == [] or time.monotonic() > end:
                return ["the engine does not answer"] if found is None else found
            time.sleep(0.05)

    def close(self) -> None:
        """Look no more, and leave."""
        self.rest()
        self._client.close()
