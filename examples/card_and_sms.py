"""Calls to others in series, charge a card and send an SMS, by workers that may be stopped.

    python examples/card_and_sms.py

A card company checks no token of ours. What helps: the lease is confirmed for longer than a call
may take before each call is made; each call has a key of its own, so that the service itself knows
a repeated one; and what is done is kept, so that the next worker goes on where the last one stood.
Without all that, the worker that was stopped between the two calls makes its second one anyway.
"""

import sqlite3
import tempfile
from collections.abc import Callable

from stopped import TTL, overtaken

import holdfast
from holdfast.guards import SQLGuard

LONGEST_CALL = 0.1  # seconds; TTL must be larger by far


class Service:
    """Somebody else's service: what was asked of it, and whether it knew the key already."""

    def __init__(self, folder: str, name: str) -> None:
        self._name = name
        self._calls = sqlite3.connect(f"{folder}/{name}.db", isolation_level=None, timeout=30)
        self._calls.execute("CREATE TABLE IF NOT EXISTS call (key TEXT UNIQUE)")

    def call(self, key: str | None) -> None:
        """Do it; with a key at most once."""
        done = self._calls.execute("INSERT OR IGNORE INTO call VALUES (?)", (key,)).rowcount
        print(f"  {self._name} {'done' if done else 'known already'}")

    def count(self) -> int:
        """Return how often it was really done."""
        (count,) = self._calls.execute("SELECT count(*) FROM call").fetchone()
        self._calls.close()
        return int(count)


def book(folder: str, careful: bool, pause: Callable[[], None]) -> None:
    """Charge the card, then send the SMS, for order 99."""
    orders = sqlite3.connect(f"{folder}/orders.db", timeout=30)
    card, sms = Service(folder, "card"), Service(folder, "sms")
    client = holdfast.connect(f"sqlite://{folder}/locks.db")
    try:
        with client.lock("orders/99", ttl=TTL) as lease:
            if not careful:
                card.call(None)
                pause()
                sms.call(None)
                return
            guard = SQLGuard(orders)
            for step, service in enumerate((card, sms)):
                if step:
                    pause()
                lease.ensure_held(LONGEST_CALL)  # raises before the call, not after it
                with guard.transaction("orders/99", lease):
                    key = f"orders/99/{step}"
                    guard.once(key, lambda service=service, key=key: service.call(key))
    except holdfast.LockError as error:
        print(f"  {type(error).__name__}: {error}")
    finally:
        client.close()
        orders.close()
        card.count()
        sms.count()


def main() -> None:
    """Let a second worker take over between the two calls of the first."""
    for careful in (False, True):
        print("With keys and confirmed leases:" if careful else "Without:")
        with tempfile.TemporaryDirectory() as folder:
            overtaken(book, folder, careful)
            charged, sent = Service(folder, "card").count(), Service(folder, "sms").count()
        print(f"  charged {charged}×, {sent} SMS")
        assert (charged, sent) == ((1, 1) if careful else (2, 2))


if __name__ == "__main__":
    main()
