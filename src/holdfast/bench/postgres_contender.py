"""A process whose threads all want one lock on PostgreSQL: started by `contest`, talks like
`contender`.

postgres_contender.py holdfast|polling THREADS URL
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from secrets import token_hex
from typing import Any

import psycopg

from .. import connect
from .contender import MakeTurn, Turn, contend

TTL = 30.0
POLL = 0.1  # seconds

TABLE = "CREATE TABLE IF NOT EXISTS polled (name text PRIMARY KEY, owner text)"
ROW = "INSERT INTO polled VALUES (%s) ON CONFLICT DO NOTHING"
TAKE = "UPDATE polled SET owner = %s WHERE name = %s AND owner IS NULL"
GIVE = "UPDATE polled SET owner = NULL WHERE name = %s AND owner = %s"


def _holdfast(stack: ExitStack, url: str) -> MakeTurn:
    ours = stack.enter_context(connect(url))

    def make(key: str) -> Turn:
        lock = ours.lock(key, ttl=TTL)

        def turn() -> int:
            lease = lock.acquire()
            if lease is None:
                return 0
            held = time.monotonic_ns()
            lease.release()
            return held

        return turn

    return make


def _polling(stack: ExitStack, url: str) -> MakeTurn:
    """Look, and look again after a while, on a connection per thread: the usual way.

    Every round has threads of its own under the same names: they go on with the connections.
    """
    mutex = threading.Lock()
    connections: dict[str, psycopg.Connection[Any]] = {}

    def make(key: str) -> Turn:
        name = threading.current_thread().name
        with mutex:
            if name not in connections:
                connections[name] = stack.enter_context(psycopg.connect(url, autocommit=True))
        connection = connections[name]
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(1)")
            connection.execute(TABLE)
            connection.execute(ROW, (key,))
        me = token_hex(8)

        def turn() -> int:
            while not connection.execute(TAKE, (me, key), prepare=True).rowcount:
                time.sleep(POLL)
            held = time.monotonic_ns()
            connection.execute(GIVE, (key, me), prepare=True)
            return held

        return turn

    return make


KINDS: dict[str, Callable[[ExitStack, str], MakeTurn]] = {
    "holdfast": _holdfast,
    "polling": _polling,
}


def main(kind: str, threads: str, url: str) -> None:
    """Do what the lines on standard input say, until there are no more."""
    with ExitStack() as stack:
        make = KINDS[kind](stack, url)
        _say({})
        for line in sys.stdin:
            key, warm, seconds = line.split()
            _say(contend(make, int(threads), key, float(warm), float(seconds)))


def _say(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
