"""A process whose threads all want one lock: started by `contest`, talks in lines of JSON.

contender.py KIND THREADS ADDRESS…   say that it is ready; then for each line "KEY WARM SECONDS"
let the threads take turns that long, and say when each had the lock after the first WARM seconds
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from .. import connect
from .contestant import TTL, Contestant, Place, why_not
from .handle import NotHeld
from .peers.redis_ones import PythonRedisLock, RedlockPy
from .redis_servers import url_of

Turn = Callable[[], int]  # take the lock and give it back; when we had it, 0: it was not to be had
MakeTurn = Callable[[str], Turn]


def _holdfast(stack: ExitStack, addresses: Sequence[str]) -> MakeTurn:
    ours = stack.enter_context(connect(url_of(addresses)))

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


def _peer(kind: type[Contestant]) -> Callable[[ExitStack, Sequence[str]], MakeTurn]:
    def open_peer(stack: ExitStack, addresses: Sequence[str]) -> MakeTurn:
        theirs = kind(stack, Place("redis", "", tuple(addresses)))

        def make(key: str) -> Turn:
            acquire, release = theirs.lock(key)

            def turn() -> int:
                try:
                    acquire()
                except NotHeld:
                    return 0
                held = time.monotonic_ns()
                release()
                return held

            return turn

        return make

    return open_peer


class _TryOnce(RedlockPy):
    """It gives up by itself, and so it shall: a round has to end."""

    patience = 0.0


KINDS: dict[str, Callable[[ExitStack, Sequence[str]], MakeTurn]] = {
    "holdfast": _holdfast,
    "python-redis-lock": _peer(PythonRedisLock),
    "redlock-py": _peer(_TryOnce),
}


def contend(make: MakeTurn, threads: int, key: str, warm: float, seconds: float) -> dict[str, Any]:
    """Let the threads take turns; return when each had the lock, or what went wrong."""
    turns: list[list[int]] = [[] for _ in range(threads)]
    problems: list[str] = []
    begin = time.monotonic_ns() + int(warm * 1e9)
    end = begin + int(seconds * 1e9)

    def work(number: int) -> None:
        try:
            turn = make(key)
            while time.monotonic_ns() < end:
                held = turn()
                if begin <= held < end:
                    turns[number].append(held)
        except Exception as error:
            problems.append(why_not(error))

    workers = [
        threading.Thread(target=work, args=(number,), name=f"contender-{number}")
        for number in range(threads)
    ]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    return {"problem": problems[0]} if problems else {"turns": turns}


def main(kind: str, threads: str, *addresses: str) -> None:
    """Do what the lines on standard input say, until there are no more."""
    with ExitStack() as stack:
        try:
            make = KINDS[kind](stack, addresses)
        except Exception as error:
            _say({"problem": why_not(error)})
            return
        _say({})
        for line in sys.stdin:
            key, warm, seconds = line.split()
            _say(contend(make, int(threads), key, float(warm), float(seconds)))


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
