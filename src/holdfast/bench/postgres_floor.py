"""postgresql:// beside two bare updates through the same driver, and beside polling."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from secrets import token_hex
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import aio, connect
from ..errors import MissingDriver
from .contest import Rounds, contest
from .floor import Row, Step
from .handle import Handle, pair_of
from .redis_peers import repeated
from .redis_servers import apart, no_figure
from .timing import alternate, ratio

if TYPE_CHECKING:
    from ..testing.servers import PostgresServer

TTL = 30.0
NAMES = 1_000

CREATE = """
CREATE TABLE IF NOT EXISTS bare (
    name text PRIMARY KEY, owner text, token bigint NOT NULL, expires timestamptz
) WITH (fillfactor = 50)
"""
TAKE = """
UPDATE bare SET owner = %s, expires = clock_timestamp() + interval '30 s',
    token = greatest(token + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
WHERE name = %s AND owner IS NULL RETURNING token
"""
GIVE = "UPDATE bare SET owner = NULL WHERE name = %s AND owner = %s"


def bare_lock(connection: Any, name: str) -> Handle:
    """The floor: an update that returns a token, and a conditional one."""
    owner = token_hex(16)
    row = "INSERT INTO bare VALUES (%s, NULL, 0) ON CONFLICT (name) DO UPDATE SET owner = NULL"
    connection.execute(row, (name,))

    def take() -> None:
        assert connection.execute(TAKE, (owner, name), prepare=True).fetchone()

    def give() -> None:
        assert connection.execute(GIVE, (name, owner), prepare=True).rowcount

    return Handle(take, give)


class Sizes(NamedTuple):
    """How much to measure."""

    rounds: int  # of pairs
    pairs: int  # in a round
    contest: Rounds
    cycles: int  # of all names


QUICK = Sizes(11, 60, Rounds(2, 0.3, 2.0), 20)
FULL = Sizes(41, 150, Rounds(5, 0.5, 3.0), 100)


def pair(sizes: Sizes, server: PostgresServer) -> list[Row]:
    """An uncontended acquire and release, blocking."""
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as bare, connect(server.url) as client:
        bare.execute(CREATE)
        floor = repeated(sizes.pairs, pair_of(bare_lock(bare, "pair")))
        lock = client.lock("pair", ttl=TTL)

        def ours() -> None:
            for _ in range(sizes.pairs):
                lease = lock.acquire()
                assert lease is not None
                lease.release()

        with apart([server]) as note:
            times = alternate(sizes.rounds, sizes.pairs, floor, ours)
    base, mine = times
    row = ratio("pair, sync / two bare updates through psycopg", base, mine, 1.25)
    return [row._replace(note=f"{row.note}, fsync = off{note}")]


def pair_of_tasks(sizes: Sizes, server: PostgresServer) -> list[Row]:
    """The same, awaitable."""
    return asyncio.run(_pair_of_tasks(sizes, server))


async def _pair_of_tasks(sizes: Sizes, server: PostgresServer) -> list[Row]:
    import psycopg

    owner = token_hex(16)
    bare = await psycopg.AsyncConnection.connect(server.url, autocommit=True)
    async with bare, aio.connect(server.url) as client:
        await bare.execute(CREATE)
        await bare.execute("INSERT INTO bare VALUES ('pair', NULL, 0)")
        lock = client.lock("pair", ttl=TTL)
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(sizes.rounds):
            started = time.perf_counter()
            for _ in range(sizes.pairs):
                await (await bare.execute(TAKE, (owner, "pair"), prepare=True)).fetchone()
                await bare.execute(GIVE, ("pair", owner), prepare=True)
            middle = time.perf_counter()
            for _ in range(sizes.pairs):
                lease = await lock.acquire()
                assert lease is not None
                await lease.release()
            ended = time.perf_counter()
            times[0].append((middle - started) / sizes.pairs * 1e6)
            times[1].append((ended - middle) / sizes.pairs * 1e6)
    return [ratio("pair, async / two bare updates through psycopg", *times, 1.25)]


def waiters(sizes: Sizes, server: PostgresServer) -> list[Row]:
    """Waiters of several processes on one key, beside pollers."""
    return contest(
        20,
        [server.url],
        sizes.contest,
        peer="polling",
        least_rate=5.0,
        most_share=1.2,
        program="postgres_contender",
    )


def bloat(sizes: Sizes, server: PostgresServer) -> list[Row]:
    """What many names leave behind that are used again and again."""
    import psycopg

    rates: list[float] = []
    marks: list[int] = []
    with psycopg.connect(server.url, autocommit=True) as look, connect(server.url) as client:
        locks = [client.lock(f"cycled/{number}", ttl=TTL) for number in range(NAMES)]
        for cycle in range(sizes.cycles):
            started = time.perf_counter()
            for lock in locks:
                lease = lock.acquire()
                assert lease is not None
                lease.release()
            rates.append(NAMES / (time.perf_counter() - started))
            if cycle + 1 in (sizes.cycles // 5, sizes.cycles):
                marks.append(_size(look))
    early, late = marks
    note = (
        f"{late / 1024:,.0f} KiB, {late / NAMES:.0f} bytes per name; {median(rates):,.0f} pairs/s"
    )
    what = f"tables and indexes of {NAMES:,} names, {sizes.cycles} / {sizes.cycles // 5} cycles"
    return [Row(what, late / early, "×", 1.2, note)]


def _size(connection: object) -> int:
    rows = connection.execute(  # type: ignore[attr-defined]
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' "
        "AND relnamespace = 'holdfast'::regnamespace"
    )
    return int(rows.fetchone()[0])


def _on_server(what: str, measure: Callable[[PostgresServer], list[Row]]) -> list[Row]:
    """Return what is measured on a new server, which is stopped afterwards."""
    try:
        # Here, not above: it needs what a user of locks has not installed.
        from ..testing.servers import PostgresServer, ServerMissing
    except ImportError as error:
        return [no_figure(what, f'needs {error.name}: pip install "holdfast[testing]"')]
    try:
        with PostgresServer() as server:
            return measure(server)
    except (ServerMissing, MissingDriver) as error:
        return [no_figure(what, str(error))]


def plan(sizes: Sizes) -> list[Step]:
    """Return what to measure, in order, each on a server of its own."""
    measures: dict[str, Callable[[Sizes, PostgresServer], list[Row]]] = {
        "pair, sync": pair,
        "pair, async": pair_of_tasks,
        "20 waiters": waiters,
        "bloat": bloat,
    }
    return [
        partial(_on_server, f"postgresql: {what}", partial(measure, sizes))
        for what, measure in measures.items()
    ]


def steps(quick: bool) -> list[Step]:
    """Return what to measure, in order."""
    return plan(QUICK if quick else FULL)
