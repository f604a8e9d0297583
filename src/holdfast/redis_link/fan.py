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
    deadline = time.monotonic() + timeout
    answers: list[Reply] = [None] * len(links)
    ready: list[tuple[int, Connection]] = []
    others: list[tuple[int, Connection]] = []
    try:
        for number, link in enumerate(links):
            connection = link.take()
            if connection is not None:
                ready.append((number, connection))
                connection.reply = False
                connection.begin(requests[number], timeout)
                continue
            try:
                connection = link.make()
            except EngineUnavailable as error:
                answers[number] = error
                continue
            connection.request = requests[number]
            others.append((number, connection))
        patient = deadline - timeout * (1 - IN_NO_TIME)
        for at, (_, connection) in enumerate(ready):
            connection.finish()
            if time.monotonic() > patient:
                others += [one for one in ready[at:] if one[1].reply is False]
                break
        if others:
            drive([connection for _, connection in others], deadline)
    except BaseException:
        for _, connection in (*ready, *others):
            connection.close()
        raise
    for number, connection in dict((*ready, *others)).items():
        answers[number] = _settle(links[number], connection, timeout)
    return answers


def _settle(link: Link, connection: Connection, timeout: float) -> Reply:
    """Return the answer of a connection, and keep it if it may be used again."""
    reply = connection.reply
    if reply is False or isinstance(reply, OSError):
        connection.close()
        why = f"within {timeout:.3g} s" if reply is False else str(reply)
        if connection.greeting is None:
            return unreachable(link.settings, why)
        return silent(link.settings, why)
    if connection.greeting is None:  # it did not greet us properly: the reply says why
        connection.close()
        return reply
    if not connection.announced:
        link.greeted(connection)
    link.give_back(connection)
    return reply
