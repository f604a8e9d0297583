"""A migration of the whole fleet: every machine starts it, one runs it, nobody starts too early.

    python examples/migration.py

Each process of a deployment calls `migrate()` before it serves. The lock lets one in at a time;
`guard.once` keeps what is done in the database itself, in the transaction of the migration: a
machine that was stopped, or a second deployment, cannot run it again.
"""

import multiprocessing
import os
import sqlite3
import tempfile

import holdfast
from holdfast.guards import SQLGuard

MACHINES = 4


def add_currency(database: sqlite3.Connection) -> str:
    """Do what must happen once: a second time it would fail, or double the amounts."""
    database.execute("ALTER TABLE orders ADD COLUMN currency TEXT NOT NULL DEFAULT 'EUR'")
    database.execute("UPDATE orders SET amount = amount * 100")
    return f"done by process {os.getpid()}"


def migrate(folder: str, machine: int) -> None:
    """Bring the database up to date, then serve."""
    database = sqlite3.connect(f"{folder}/shop.db", timeout=30)
    with holdfast.connect(f"sqlite://{folder}/locks.db") as client:
        with client.lock("migrations", timeout=60) as lease:
            guard = SQLGuard(database)
            with guard.transaction("schema", lease):
                result = guard.once("0042-add-currency", lambda: add_currency(database))
    (amount, currency) = database.execute("SELECT amount, currency FROM orders").fetchone()
    print(f"  machine {machine} serves: {amount} {currency} ({result})")
    database.close()


def main() -> None:
    """Start all machines at the same time."""
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(f"{folder}/shop.db")
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INT)")
        with database:
            database.execute("INSERT INTO orders (amount) VALUES (17)")
        print(f"{MACHINES} machines start:")
        machines = [fork.Process(target=migrate, args=(folder, n)) for n in range(MACHINES)]
        for machine in machines:
            machine.start()
        for machine in machines:
            machine.join()
        (amount,) = database.execute("SELECT amount FROM orders").fetchone()
        database.close()
    assert all(machine.exitcode == 0 for machine in machines)
    assert amount == 1700, amount
    print("  migrated once")


if __name__ == "__main__":
    main()
