"""redis:// beside two bare scripts, and beside the locks people use today."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .. import aio, connect
from . import own_keys
from .contest import Rounds, contest
from .floor import Row, Step
from .redis_pair import compare
from .redis_peers import ON_ONE, TTL
from .redis_servers import addresses_of, apart, cpu_of, figures, no_figure, on_servers, url_of

if TYPE_CHECKING:
    from ..testing.servers import RedisServer

FEW, MANY = 10, 1_000  # waiters between which the commands per hand-over must not grow


class Sizes(NamedTuple):
    """How much to measure."""

    rounds: int  # of pairs
    pairs: int  # in a round
    contest: Rounds
    hand_overs: int  # while commands are counted
    async_rounds: int
    async_pairs: int  # of each task in a round
    leases: int
    watch: float  # seconds to look at renewals


QUICK = Sizes(11, 60, Rounds(2, 0.2, 1.0), 2_000, 3, 10, 10_000, 10.0)
FULL = Sizes(61, 150, Rounds(5, 0.3, 1.5), 5_000, 11, 20, 10_000, 20.0)


def pair(sizes: Sizes, servers: Sequence[RedisServer]) -> list[Row]:
    """An uncontended acquire and release, blocking."""
    beside = "two bare scripts"
    where = addresses_of(servers)
    with apart(servers) as note:
        rows = compare(where, ON_ONE, sizes.rounds, sizes.pairs, beside=beside, aim=1.3)
    return [row._replace(note=row.note + note) for row in rows]


def waiters(count: int, sizes: Sizes, servers: Sequence[RedisServer]) -> list[Row]:
    """Waiters of several processes on one key."""
    return contest(
        count,
        addresses_of(servers),
        sizes.contest,
        peer="python-redis-lock",
        least_rate=1.5,
        most_share=1.2,
    )


class Cost(NamedTuple):
    """What one hand-over costs the server."""

    requests: float  # from clients
    calls: float  # inside scripts
    micros: float  # in scripts


def commands(sizes: Sizes, servers: Sequence[RedisServer]) -> list[Row]:
    """What the server does for one hand-over, by the number of waiters."""
    counts = (FEW, 100, MANY)
    costs = [asyncio.run(_cost(count, sizes.hand_overs, servers[0])) for count in counts]
    few, many = costs[0], costs[-1]
    between = f"per hand-over, {MANY:,} / {FEW} waiters"
    requests, calls, micros = (
        " → ".join(f"{figure:.3g}" for figure in column) for column in zip(*costs, strict=True)
    )
    crowds = " → ".join(f"{count:,}" for count in counts)
    inside = f"{calls}; the scripts take {micros} µs"
    return [
        Row(
            f"server commands {between}",
            many.requests / few.requests,
            "×",
            1.1,
            f"{requests} with {crowds} waiters",
        ),
        Row(f"calls inside scripts {between}", many.calls / few.calls, "×", 1.1, inside),
    ]


async def _cost(count: int, hand_overs: int, server: RedisServer) -> Cost:
    async with aio.connect(url_of(addresses_of([server]))) as client:
        lock = client.lock(f"commands/{count}", ttl=TTL)
        turns = max(1, hand_overs // count)

        async def wait_in_line(turns: int) -> None:
            for _ in range(turns):
                lease = await lock.acquire()
                assert lease is not None
                await lease.release()

        await asyncio.gather(*(wait_in_line(1) for _ in range(2)))  # connections and scripts
        server.command("CONFIG", "RESETSTAT")
        await asyncio.gather(*(wait_in_line(turns) for _ in range(count)))
        requests = calls = micros = 0.0
        for name, value in figures(server, "commandstats").items():
            fields = dict(part.split("=") for part in value.split(","))
            if name in ("cmdstat_evalsha", "cmdstat_eval"):
                requests += int(fields["calls"])
                micros += int(fields["usec"])
            elif name not in ("cmdstat_info", "cmdstat_config|resetstat"):  # which are ours here
                calls += int(fields["calls"])
    total = turns * count
    return Cost(requests / total, calls / total, micros / total)


def own_key_each(sizes: Sizes, servers: Sequence[RedisServer]) -> list[Row]:
    """Tasks that do not wait for one another, through one client."""
    rates = own_keys.measure(servers, sizes.async_rounds, sizes.async_pairs, peer=True)
    what = f"pairs/s, {own_keys.TASKS} tasks, a key each / redis.asyncio's Lock"
    if rates.problem:
        why = f"redis.asyncio {rates.problem}; ours: {rates.ours:,.0f}/s; {rates.load}"
        return [no_figure(what, why)]
    note = f"{rates.ours:,.0f}/s beside {rates.peer:,.0f}/s; {rates.load}"
    return [Row(what, rates.ours / rates.peer, "×", 3.0, note, at_least=True)]


def held_leases(sizes: Sizes, servers: Sequence[RedisServer]) -> list[Row]:
    """CPU that renewing many leases costs us, and the server."""
    with connect(url_of(addresses_of(servers))) as client:
        leases = [client.lock(f"held/{n}", ttl=TTL).acquire() for n in range(sizes.leases)]
        base, before, started = cpu_of(servers), time.process_time(), time.monotonic()
        time.sleep(sizes.watch)
        busy, passed = time.process_time() - before, time.monotonic() - started
        server = (cpu_of(servers) - base) / passed * 100
        kept = sum(lease is not None and lease.held for lease in leases)
    return [
        Row(
            f"CPU for renewing {sizes.leases:,} leases at ttl={TTL:g} s",
            busy / passed * 100,
            " % of a core",
            5.0,
            f"over {passed:.0f} s; {kept:,} still held; the server needs {server:.2g} %",
        )
    ]


def plan(sizes: Sizes) -> list[Step]:
    """Return what to measure, in order, each on a server of its own."""
    measures: dict[str, Callable[[Sizes, Sequence[RedisServer]], list[Row]]] = {
        "pair, sync": pair,
        "20 waiters": partial(waiters, 20),
        "100 waiters": partial(waiters, 100),
        "commands": commands,
        "a key each": own_key_each,
        "held leases": held_leases,
    }
    return [
        partial(on_servers, f"redis: {what}", 1, partial(measure, sizes))
        for what, measure in measures.items()
    ]


def steps(quick: bool) -> list[Step]:
    """Return what to measure, in order."""
    return plan(QUICK if quick else FULL)
