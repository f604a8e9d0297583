"""Tasks of one event loop that do what a load asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..async_contestant import AsyncHandle
from .load import Load
from .sample import Turn
from .threads import CLOCK, MOST


async def run_tasks(
    load: Load, handles: Sequence[AsyncHandle], start: int, end: int
) -> list[list[Turn]]:
    """Let each client ask again and again between two instants; return its turns."""

    async def work(handle: AsyncHandle) -> list[Turn]:
        turns = []
        await asyncio.sleep(max(0, start - CLOCK()) / 1e9)
        for _ in range(load.turns or MOST):
            if (started := CLOCK()) >= end:
                break
            await handle.acquire()
            held = CLOCK()
            await handle.release()
            turns.append(Turn(started, started, held, held, CLOCK()))
        return turns

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work(handle)) for handle in handles]
    return [task.result() for task in tasks]
