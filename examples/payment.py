"""An invoice, paid twice: the payer looked before it was stopped, and paid after it went on.

    python examples/payment.py

`guard.once` pays at most once per invoice, whoever comes and however often, and gives everybody the
same receipt. The token keeps out who lost the lock; the key keeps out who asks again.
"""

import sqlite3
import tempfile
from collections.abc import Callable

from stopped import TTL, overtaken

import holdfast
from holdfast.guards import SQLGuard


def pay(folder: str, guarded: bool, pause: Callable[[], None]) -> None:
    """Pay invoice 41 unless it is paid."""
    books = sqlite3.connect(f"{folder}/books.db")
    client = holdfast.connect(f"sqlite://{folder}/locks.db")

    def transfer() -> str:
        cursor = books.execute("INSERT INTO payment (invoice, cents) VALUES (41, 12500)")
        return f"receipt {cursor.lastrowid}"

    try:
        with client.lock("invoice/41", ttl=TTL) as lease:
            paid = books.execute("SELECT id FROM payment WHERE invoice = 41").fetchone()
            pause()  # whoever is stopped here believes for ever that it is not paid
            if guarded:
                guard = SQLGuard(books)
                with guard.transaction("invoice/41", lease):
                    print(f"  {guard.once('invoice/41', transfer)}")
            elif not paid:
                with books:
                    print(f"  {transfer()}")
    except holdfast.LockError as error:
        print(f"  {type(error).__name__}: {error}")
    finally:
        client.close()
        books.close()


def main() -> None:
    """Let two workers pay, without the guard and with it, and a third one ask again."""
    for guarded in (False, True):
        print("With the guard:" if guarded else "Without the guard:")
        with tempfile.TemporaryDirectory() as folder:
            books = sqlite3.connect(f"{folder}/books.db")
            books.execute("CREATE TABLE payment (id INTEGER PRIMARY KEY, invoice INT, cents INT)")
            overtaken(pay, folder, guarded)
            if guarded:
                pay(folder, guarded, lambda: None)
            (paid,) = books.execute("SELECT sum(cents) FROM payment").fetchone()
            books.close()
        print(f"  of 125.00, {paid / 100:.2f} paid")
        assert paid == (12500 if guarded else 25000)


if __name__ == "__main__":
    main()
