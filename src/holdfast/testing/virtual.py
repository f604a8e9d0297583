"""A memory client on the running loop's own time: hours of waiting in a test cost nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from .._async.client import AsyncClient
from .._async.engines.memory import AsyncMemoryEngine
from ..lock_table import LockTable


def virtual_client(state: LockTable | None = None, **options: Any) -> AsyncClient:
    """Return a client whose leases, waits and renewals run on `loop.time()`.

    Call it on a VirtualLoop (`holdfast.testing.run`). Clients that are to meet share a `state`;
    without one each has its own. Options are those of `connect`.
    """
    time = asyncio.get_running_loop().time
    state = state or virtual_state()
    engine = AsyncMemoryEngine("memory://virtual", max_ttl=300.0, clock=time, state=state)
    return AsyncClient(engine, clock=time, **options)


def virtual_state() -> LockTable:
    """Return an empty lock table on the running loop's time, for clients to share."""
    time = asyncio.get_running_loop().time
    return LockTable(clock=time, micros=lambda: int(time() * 1e6))
