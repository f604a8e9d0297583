"""What the tests of the virtual loop are made of: a process, and something that ticks in it."""

from __future__ import annotations

import asyncio

from holdfast.testing.loop import Process, ProcessClock, current_loop


def make(name: str = "p") -> Process:
    """Return a process with a clock of its own."""
    return Process(name, ProcessClock(current_loop()))


async def ticker(seen: list[float], every: float = 1.0) -> None:
    """Note the time for ever."""
    while True:
        await asyncio.sleep(every)
        seen.append(current_loop().time() - 1000)
