"""The same question to several servers at once: from one thread, or from one task.

Rule 1: all are sent before any is awaited; together they take as long as the slowest, and never
        longer than the time-out.
Rule 2: an answer is a value: a reply, or the exception that came instead of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from ..errors import EngineUnavailable
from .blocking import Link
from .connection import Connection, drive
from .streaming import AsyncLink
from .wire import Reply, silent, unreachable

AT_ONCE = 0.0002  # seconds: we did not have to wait for it
IN_NO_TIME = 0.25  # part of the time-out after which the rest is awaited together, not in turn


async def afan_out(
    links: Sequence[AsyncLink], requests: Sequence[bytes], timeout: float
) -> list[Reply]:
    """Send to each link its request; return the answers in the same order."""
    waiting: list[asyncio.Future[Reply]] = []
    for link, request in zip(links, requests, strict=True):
        answer = link.submit(request, timeout)
        if answer is None:  # not connected yet
            answer = asyncio.ensure_future(link.call(request, timeout))
        waiting.append(answer)
    try:
        return list(await asyncio.gather(*waiting, return_exceptions=True))
    except asyncio.CancelledError:
        for link in links:
            link.retire()
        raise


def fan_out(links: Sequence[Link], requests: Sequence[bytes], timeout: float) -> list[Reply]:
    """Send to each link its request; return the answers in the same order."""
    before = started = time.monotonic()
    patient = started + timeout * IN_NO_TIME
    taken: list[Connection | None] = []  # those that are neither kept nor closed yet
    answers: list[Reply] = []
    try:
        for link in links:
            taken.append(link.take(started))
        # One right after the other: servers that share a core are woken up once.
        for connection, request in zip(taken, requests, strict=True):
            if connection is not None:
                connection.begin(request, timeout)
        for number, connection in enumerate(taken):
            if connection is None or before > patient or (reply := connection.finish()) is False:
                deadline = started + timeout
                return answers + _patiently(links, requests, taken, number, deadline, timeout)
            link, now = links[number], time.monotonic()
            if now - before > AT_ONCE or now - started < link.latency:
                link.latency = now - started  # else it was there before, who knows for how long
            connection.used = before = now
            taken[number] = None
            link.keep(connection)
            answers.append(reply)
    except BaseException:
        for connection in taken:
            if connection is not None:
                connection.close()
        raise
    return answers


def _patiently(
    links: Sequence[Link],
    requests: Sequence[bytes],
    taken: list[Connection | None],
    first: int,
    deadline: float,
    timeout: float,
) -> list[Reply]:
    """Connect to those that are not there yet, and wait for all from the first on together."""
    rest = range(first, len(links))
    answers: list[Reply] = []
    failed: dict[int, Reply] = {}
    for number in rest:
        if taken[number] is None:
            try:
                connection = taken[number] = links[number].make()
            except EngineUnavailable as error:
                failed[number] = error
            else:
                connection.request = requests[number]
    begun = time.monotonic()
    drive([one for one in taken if one is not None and one.reply is False], deadline)
    for number in rest:
        link, one = links[number], taken[number]
        if one is None:
            answers.append(failed[number])
            continue
        took = one.used - (deadline - timeout)
        if one.used - begun > len(links) * AT_ONCE or 0 < took < link.latency:
            link.latency = took
        taken[number] = None
        answers.append(_settle(link, one, deadline - timeout, timeout))
    return answers


def _settle(link: Link, connection: Connection, started: float, timeout: float) -> Reply:
    """Return the answer of a connection, and keep it if it may be used again."""
    reply = connection.reply
    if reply is False or isinstance(reply, OSError):
        connection.close()
        why = f"within {timeout:.3g} s" if reply is False else str(reply)
        if connection.greeting is None:
            return unreachable(link.settings, why)
        if link.heard < started:  # nor has anybody else: all connections may be half open
            link.leave()
        return silent(link.settings, why)
    if connection.greeting is None:  # it did not greet us properly: the reply says why
        connection.close()
        return reply
    if not connection.announced:
        link.greeted(connection)
    link.give_back(connection)
    return reply
