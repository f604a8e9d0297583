"""A webhook that is delivered several times, at the same time too: handled once.

    python examples/webhook.py

Who sends webhooks repeats them until it gets an answer, so the same event comes twice sooner or
later. It has an id: that is the key. No lock is needed; whoever comes while the first is at work
waits for it and gets the same answer.
"""

import sqlite3
import tempfile
import threading

from holdfast.guards import SQLGuard

DELIVERIES = 5


def handle(folder: str, event: str, answers: list[str]) -> None:
    """Handle one delivery and answer the sender."""
    shop = sqlite3.connect(f"{folder}/shop.db", timeout=30)

    def ship() -> str:
        cursor = shop.execute("INSERT INTO parcel (event) VALUES (?)", (event,))
        return f"parcel {cursor.lastrowid}"

    answers.append(SQLGuard(shop).once(f"webhook/{event}", ship))
    shop.close()


def main() -> None:
    """Deliver the same event several times at once."""
    answers: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        shop = sqlite3.connect(f"{folder}/shop.db")
        shop.execute("CREATE TABLE parcel (id INTEGER PRIMARY KEY, event TEXT)")
        deliveries = [
            threading.Thread(target=handle, args=(folder, "evt_1", answers))
            for _ in range(DELIVERIES)
        ]
        for delivery in deliveries:
            delivery.start()
        for delivery in deliveries:
            delivery.join()
        (parcels,) = shop.execute("SELECT count(*) FROM parcel").fetchone()
        shop.close()
    print(f"{len(answers)} answers, all the same: {answers[0]}; {parcels} parcel")
    assert answers == ["parcel 1"] * DELIVERIES
    assert parcels == 1


if __name__ == "__main__":
    main()
