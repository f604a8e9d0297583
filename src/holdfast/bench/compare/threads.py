"""Threads of one process that do what a load asks for."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence

from ..handle import Handle
from .load import Load
from .sample import Turn

CLOCK = time.monotonic_ns  # the same for all processes of a machine
MOST = 200_000  # turns that one client remembers

Handles = Sequence[Handle]  # of one client: one after the other, or for reading and for writing


def run_threads(
    load: Load, handles: Sequence[Handles], start: int, end: int
) -> tuple[list[list[Turn]], int]:
    """Let each client work between two instants; return its turns, and what nobody began."""
    turns: list[list[Turn]] = [[] for _ in handles]
    problems: list[Exception] = []
    arrivals = itertools.count()

    def work(number: int) -> None:
        try:
            _loop(load, number, handles[number], turns[number], start, end, arrivals)
        except Exception as error:
            problems.append(error)

    if len(handles) == 1:
        work(0)  # without a second thread there is nobody to wait for
    else:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(len(handles))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if problems:
        raise problems[0]
    return turns, _unserved(load, next(arrivals), start, end)


def _loop(
    load: Load,
    number: int,
    handles: Handles,
    turns: list[Turn],
    start: int,
    end: int,
    arrivals: itertools.count[int],
) -> None:
    wait = start - CLOCK()
    if wait > 0:
        time.sleep(wait / 1e9)
    if load.rate is not None:
        _open_loop(load, handles[0], turns, start, end, arrivals)
    elif load.reads is not None:
        _mixed_loop(load, number, handles, turns, end)
    elif load.work or load.locks > 1:
        _request_loop(load, handles, turns, end)
    else:
        _closed_loop(handles[0], turns, end, load.turns or MOST)


def _closed_loop(handle: Handle, turns: list[Turn], end: int, most: int) -> None:
    acquire, release = handle
    clock, note = CLOCK, turns.append
    for _ in range(most):
        started = clock()
        if started >= end:
            return
        acquire()
        held = clock()
        release()
        note(Turn(started, started, held, held, clock()))


def _open_loop(
    load: Load,
    handle: Handle,
    turns: list[Turn],
    start: int,
    end: int,
    arrivals: itertools.count[int],
) -> None:
    """Serve what is due; who comes late begins late, and that counts."""
    assert load.rate is not None
    acquire, release = handle
    gap, clock = 1e9 / load.rate, CLOCK
    last = end + (end - start)  # who is that far behind will not catch up
    while (intended := start + int(next(arrivals) * gap)) < end:
        early = intended - clock()
        if early > 0:
            time.sleep(early / 1e9)
        started = clock()
        if started > last:
            return
        acquire()
        held = clock()
        release()
        turns.append(Turn(intended, started, held, held, clock()))


def _unserved(load: Load, taken: int, start: int, end: int) -> int:
    """Return how many requests were due that nobody began."""
    if load.rate is None:
        return 0
    return max(0, int((end - start) / 1e9 * load.rate) - taken)


def _mixed_loop(load: Load, number: int, handles: Handles, turns: list[Turn], end: int) -> None:
    read, write = handles
    dice = random.Random(load.first + number)
    for _ in range(load.turns or MOST):
        if (started := CLOCK()) >= end:
            return
        reads = dice.random() < (load.reads or 0)
        acquire, release = read if reads else write
        acquire()
        held = CLOCK()
        release()
        turns.append(Turn(started, started, held, held, CLOCK(), reads))


def _request_loop(load: Load, handles: Handles, turns: list[Turn], end: int) -> None:
    takes: list[Callable[[], object]] = [handle.acquire for handle in handles]
    gives = [handle.release for handle in reversed(handles)]
    for _ in range(load.turns or MOST):
        if (started := CLOCK()) >= end:
            return
        for take in takes:
            take()
        held = CLOCK()
        if load.work:
            time.sleep(load.work)
        releasing = CLOCK()
        for give in gives:
            give()
        turns.append(Turn(started, started, held, releasing, CLOCK()))
