"""The same question to several servers at once: from one thread, or from one task.

Rule 1: all are sent before any is awaited; together they take as long as the slowest, and never
        longer than the time-out.
Rule 2: an answer is a value: a reply, or the exception that came instead of it.
Rule 3: where enough yeses decide, nobody waits for the others: LATE stands in their place, and they
        are told when they come. Only whoever is being connected to is waited for in any case: it
        would never be ready otherwise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from ..errors import EngineUnavailable
from .blocking import Link
from .connection import Connection, drive
from .round import LATE, Place, Round, unheard
from .streaming import AsyncLink
from .wire import Reply, silent

INTERRUPTED = "whoever asked was interrupted"
OVERDUE = "nor to what was asked before"


async def afan_out(
    links: Sequence[AsyncLink],
    requests: Sequence[bytes],
    timeout: float,
    enough: int = 0,
    late: Callable[[int, Reply], None] = unheard,
) -> list[Reply]:
    """Send to each link its request; return the answers in the same order.

    With `enough`, that many integers are enough; each answer that comes later is told to `late`.
    """
    round = Round(len(links), enough, late)
    connecting: list[asyncio.Task[Reply]] = []
    for number, (link, request) in enumerate(zip(links, requests, strict=True)):
        if not link.submit(request, timeout, Place(round, number)):
            round.enough = 0
            task = asyncio.ensure_future(link.call(request, timeout))
            task.add_done_callback(_put_into(round, number))
            connecting.append(task)
    try:
        if not round.decided:
            round.waiter = asyncio.get_running_loop().create_future()
            await round.waiter
    except asyncio.CancelledError:
        round.forget()
        for task in connecting:
            task.cancel()
        for link in links:
            link.retire()
        raise
    round.closed = True
    return round.answers


def _put_into(round: Round, number: int) -> Callable[[asyncio.Task[Reply]], None]:
    def put(task: asyncio.Task[Reply]) -> None:
        if not task.cancelled():
            round.put(number, task.exception() or task.result())

    return put


def fan_out(
    links: Sequence[Link],
    requests: Sequence[bytes],
    timeout: float,
    enough: int = 0,
    late: Callable[[int, Reply], None] = unheard,
) -> list[Reply]:
    """Send to each link its request; return the answers in the same order.

    With `enough`, that many integers are enough; each answer that comes later is told to `late`,
    by whoever uses its connection next.
    """
    started = time.monotonic()
    round = Round(len(links), enough, late)
    taken: list[Connection | None] = []  # those that are neither kept nor closed yet
    try:
        for link in links:
            taken.append(link.take(started))
        if None in taken:
            round.enough = 0
        # One right after the other: servers that share a core are woken up once.
        for number, (connection, request) in enumerate(zip(taken, requests, strict=True)):
            if connection is not None:
                connection.ask(request, round, number, started, timeout)
        if None in taken:
            _connect(links, requests, taken, round, started, timeout)
        drive([one for one in taken if one is not None], round, started + timeout)
        if not round.decided:
            for number, connection in enumerate(taken):
                if connection is not None and round.answers[number] is LATE:
                    connection.give_up()
        round.closed = True
        _give_back(links, taken, round.answers, started)
    except BaseException:
        round.forget()
        for connection in taken:
            if connection is not None:
                connection.break_off(INTERRUPTED)
        raise
    return round.answers


def _connect(
    links: Sequence[Link],
    requests: Sequence[bytes],
    taken: list[Connection | None],
    round: Round,
    started: float,
    timeout: float,
) -> None:
    """Begin a connection to each that has none."""
    for number, link in enumerate(links):
        if taken[number] is not None:
            continue
        if link.given_up >= started:  # why should it answer now?
            round.put(number, silent(link.settings, OVERDUE))
            continue
        try:
            connection = taken[number] = link.make()
        except EngineUnavailable as error:
            round.put(number, error)
        else:
            connection.ask(requests[number], round, number, started, timeout)


def _give_back(
    links: Sequence[Link],
    taken: list[Connection | None],
    answers: Sequence[Reply],
    started: float,
) -> None:
    """Keep what may be used again."""
    now = time.monotonic()
    for number, connection in enumerate(taken):
        if connection is None:
            continue
        link = links[number]
        if not connection.broken:
            if not connection.announced:
                link.greeted(connection)
            if answers[number] is not LATE:
                link.heard = now
            taken[number] = None
            link.keep(connection, now)
        elif connection.greeting is not None and link.heard < started:
            link.leave()  # nobody else has heard of it either: all connections may be half open
