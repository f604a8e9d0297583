"""Many tasks of one client, each with a key of its own: pairs per second, and what limits them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import aio
from .contestant import TTL, why_not
from .redis_servers import addresses_of, cpu_of, url_of

if TYPE_CHECKING:
    from ..testing.servers import RedisServer

TASKS = 100


class Rates(NamedTuple):
    """Pairs per second, medians over the rounds; `problem` says why the peer has none."""

    ours: float
    peer: float
    problem: str
    load: str  # whose CPU ours needs: what limits it


def measure(servers: Sequence[RedisServer], rounds: int, pairs: int, *, peer: bool) -> Rates:
    """Let every task take and give back its own lock; ours and redis.asyncio's in turns."""
    return asyncio.run(_measure(servers, rounds, pairs, peer))


async def _measure(servers: Sequence[RedisServer], rounds: int, pairs: int, peer: bool) -> Rates:
    addresses = addresses_of(servers)
    mine, theirs, problem = list[float](), list[float](), ""
    redis: Any = None
    async with aio.connect(url_of(addresses)) as client:
        locks = [client.lock(f"own/{number}", ttl=TTL) for number in range(TASKS)]

        async def ours(lock: aio.Lock) -> None:
            for _ in range(pairs):
                lease = await lock.acquire()
                assert lease is not None
                await lease.release()

        async def others(lock: Any) -> None:
            for _ in range(pairs):
                await lock.acquire()
                await lock.release()

        await _rate(pairs, ours, locks)  # connections and scripts
        for _ in range(rounds):
            mine.append(await _rate(pairs, ours, locks))
            if not peer or problem:
                continue
            try:
                if redis is None:
                    redis = import_module("redis.asyncio").Redis.from_url(f"redis://{addresses[0]}")
                    their_locks = [redis.lock(f"own/{n}", timeout=TTL) for n in range(TASKS)]
                    await _rate(pairs, others, their_locks)
                theirs.append(await _rate(pairs, others, their_locks))
            except Exception as error:
                problem = why_not(error)
        if redis is not None:
            await redis.aclose()
        load = await _load(servers, _rate(pairs, ours, locks))
    return Rates(median(mine), median(theirs) if theirs else 0.0, problem, load)


async def _rate(pairs: int, work: Callable[[Any], Awaitable[None]], locks: Sequence[Any]) -> float:
    started = time.perf_counter()
    await asyncio.gather(*(work(lock) for lock in locks))
    return pairs * len(locks) / (time.perf_counter() - started)


async def _load(servers: Sequence[RedisServer], run: Awaitable[float]) -> str:
    """Return how busy client and servers are during a run."""
    base, before, started = cpu_of(servers), time.process_time(), time.perf_counter()
    await run
    ended, after = time.perf_counter(), time.process_time()
    passed = (ended - started) / 100
    client, server = (after - before) / passed, (cpu_of(servers) - base) / passed / len(servers)
    each = "the server" if len(servers) == 1 else "each server"
    return f"the client needs {client:.0f} % of a core, {each} {server:.0f} %"
