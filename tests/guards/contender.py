"""One process of a contest: contender.py MODULE:CLASS ADDRESS LOCK_URL guarded|unguarded TURN.

Adds one to the counter, again and again, each time under the lock, until its input ends. Says
"added TOKEN" or "refused TOKEN"; at its TURN it says "stopping TOKEN" and stops itself between
reading and writing.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import holdfast
from holdfast.guards import fence_of


def main(target: str, address: str, url: str, how: str, turn: str) -> None:
    """Run until told to end."""
    module, name = target.split(":")
    resource = getattr(importlib.import_module(module), name)(address)
    ttl = float(os.environ["HOLDFAST_CONTEST_TTL"])
    number = 0
    with holdfast.connect(url, ttl=ttl) as client:
        lock = client.lock("counter")
        while not select.select([sys.stdin], [], [], 0)[0]:
            lease = lock.acquire()
            assert lease is not None
            fence = fence_of(lease)
            number += 1

            def stop(mine: int = number, token: int = fence.token) -> None:
                if mine == int(turn):
                    print("stopping", token, flush=True)
                    os.kill(os.getpid(), signal.SIGSTOP)

            try:
                resource.increment(fence, how == "guarded", stop)
                print("added", fence.token, flush=True)
            except holdfast.StaleToken:
                print("refused", fence.token, flush=True)
            finally:
                lease.release()
    resource.close()


main(*sys.argv[1:])
