"""The last item in stock, sold twice: by a holder that was stopped past its TTL.

    python examples/stock.py

The lock cannot stop a process that does not run. The stock itself can: it has seen a newer token.
"""

import sqlite3
import tempfile
from collections.abc import Callable

from stopped import TTL, overtaken

import holdfast
from holdfast.guards import SQLGuard

SELL = "UPDATE stock SET left = ?, sold = sold + 1 WHERE item = 7"


def sell_one(folder: str, guarded: bool, pause: Callable[[], None]) -> None:
    """Look how many are left, and sell one if there is one."""
    shop = sqlite3.connect(f"{folder}/shop.db")
    client = holdfast.connect(f"sqlite://{folder}/locks.db")
    try:
        with client.lock("stock/7", ttl=TTL) as lease:
            (left,) = shop.execute("SELECT left FROM stock WHERE item = 7").fetchone()
            if not left:
                print("  sold out")
                return
            pause()  # here one of the two is stopped: when it goes on, the item is another's
            if guarded:
                with SQLGuard(shop).transaction("stock/7", lease):
                    shop.execute(SELL, (left - 1,))
            else:
                with shop:
                    shop.execute(SELL, (left - 1,))
            print(f"  sold with token {lease.token}")
    except holdfast.LockError as error:
        print(f"  {type(error).__name__}: {error}")
    finally:
        client.close()
        shop.close()


def main() -> None:
    """Sell the last item to two buyers, without the guard and with it."""
    for guarded in (False, True):
        print("With the guard:" if guarded else "Without the guard:")
        with tempfile.TemporaryDirectory() as folder:
            shop = sqlite3.connect(f"{folder}/shop.db")
            with shop:
                shop.execute("CREATE TABLE stock (item INTEGER PRIMARY KEY, left INT, sold INT)")
                shop.execute("INSERT INTO stock VALUES (7, 1, 0)")
            overtaken(sell_one, folder, guarded)
            (sold,) = shop.execute("SELECT sold FROM stock").fetchone()
            shop.close()
        print(f"  of 1 item, {sold} sold")
        assert sold == (1 if guarded else 2)


if __name__ == "__main__":
    main()
