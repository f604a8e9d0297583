"""Two leaders: the old one was stopped, and goes on as if nothing had happened.

    python examples/leader.py

Leadership is a lease, its token rises with every term. What a leader writes carries the token, so
what an old leader writes is refused by the data itself.
"""

import sqlite3
import tempfile
from collections.abc import Callable

from stopped import TTL, overtaken

import holdfast
from holdfast.guards import SQLGuard

SET = "UPDATE plan SET owner = ?, revision = revision + 1"


def lead(folder: str, guarded: bool, pause: Callable[[], None]) -> None:
    """Lead for one term: read the plan, think, write the next revision."""
    plan = sqlite3.connect(f"{folder}/plan.db")
    client = holdfast.connect(f"sqlite://{folder}/locks.db")
    try:
        with client.election("planner", value="me", ttl=TTL).campaign() as lease:
            who = f"leader with token {lease.token}"
            pause()  # the old leader is stopped while it thinks
            if guarded:
                with SQLGuard(plan).transaction("plan", lease):
                    plan.execute(SET, (who,))
            else:
                with plan:
                    plan.execute(SET, (who,))
            print(f"  {who} has written")
    except holdfast.LockError as error:
        print(f"  {type(error).__name__}: {error}")
    finally:
        client.close()
        plan.close()


def main() -> None:
    """Let a second leader take over while the first is stopped."""
    for guarded in (False, True):
        print("With the guard:" if guarded else "Without the guard:")
        with tempfile.TemporaryDirectory() as folder:
            plan = sqlite3.connect(f"{folder}/plan.db")
            with plan:
                plan.execute("CREATE TABLE plan (owner TEXT, revision INT)")
                plan.execute("INSERT INTO plan VALUES ('nobody', 0)")
            overtaken(lead, folder, guarded)
            owner, revision = plan.execute("SELECT owner, revision FROM plan").fetchone()
            plan.close()
        print(f"  revision {revision} of the plan is by the {owner}")
        assert revision == (1 if guarded else 2)  # without: the old leader has the last word


if __name__ == "__main__":
    main()
