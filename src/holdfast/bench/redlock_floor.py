"""redlock:// on five servers beside bare scripts on all of them, and beside its peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from .. import connect
from . import own_keys
from .contest import Rounds, contest
from .floor import Row, Step
from .redis_pair import compare, pair_of
from .redis_peers import ON_MANY
from .redis_servers import addresses_of, apart, on_servers, url_of
from .timing import alternate, ratio

if TYPE_CHECKING:
    from ..testing.servers import RedisServer

NODES = 5
NODE_TIMEOUT = 50_000.0  # µs, the engine's default
CLIENTS = 5
WARM = 20  # pairs


class Sizes(NamedTuple):
    """How much to measure."""

    rounds: int  # of pairs
    pairs: int  # in a round
    stopped: int  # pairs while nodes are stopped
    contest: Rounds
    async_rounds: int
    async_pairs: int  # of each task in a round


QUICK = Sizes(9, 40, 400, Rounds(2, 0.5, 1.5), 3, 5)
FULL = Sizes(41, 50, 3_000, Rounds(5, 0.3, 1.5), 15, 10)


def pair(sizes: Sizes, servers: Sequence[RedisServer]) -> list[Row]:
    """An uncontended acquire and release, blocking."""
    beside = f"two bare scripts on {NODES} nodes"
    where = addresses_of(servers)
    with apart(servers) as note:
        rows = compare(where, ON_MANY, sizes.rounds, sizes.pairs, beside=beside, aim=1.3)
    return [row._replace(note=row.note + note) for row in rows]


def stopped(count: int, sizes: Sizes, servers: Sequence[RedisServer]) -> list[Row]:
    """Pairs while nodes stand still, beside those on as many servers of which none does."""
    fine, ill = servers[:NODES], servers[NODES:]
    with ExitStack() as stack:
        apart_note = stack.enter_context(apart(servers))
        healthy_pair, *ill_pairs = (
            pair_of(stack.enter_context(connect(url_of(addresses_of(some)))))
            for some in (fine, *[ill] * CLIENTS)
        )
        for _ in range(WARM):
            for warm_up in (healthy_pair, *ill_pairs):
                warm_up()
        for server in ill[:count]:
            server.pause()
            stack.callback(server.resume)
        # A client has one first pair: so there are several clients.
        first = [once for (once,) in alternate(1, 1, *ill_pairs)]
        # In turns, pair by pair: so the worst one is known as well.
        healthy, later = alternate(sizes.stopped, 1, healthy_pair, ill_pairs[0])
    more = median(first) - median(healthy)
    slow = ratio(f"later pairs, {count} of {NODES} stopped / none", healthy, later, 1.2)
    return [
        Row(
            f"first pair, {count} of {NODES} stopped: time-outs more",
            more / NODE_TIMEOUT,
            "×",
            1.1,  # a timer is never early; a second time-out would make it 2
            f"{more / 1e3:.3g} ms more, time-outs of {NODE_TIMEOUT / 1e3:g} ms, "
            f"median of {CLIENTS} clients",
        ),
        slow._replace(note=f"{slow.note}{apart_note}; the worst took {max(later) / 1e3:.3g} ms"),
    ]


def waiters(sizes: Sizes, servers: Sequence[RedisServer]) -> list[Row]:
    """Waiters of several processes on one key."""
    where = addresses_of(servers)
    with connect(url_of(where)) as client:
        # Enrol the nodes before the rush: one that is slower than its time-out while the first
        # client does that stays out for max_ttl, and then fewer nodes would be measured, or none.
        pair_of(client)()
    return contest(
        20,
        where,
        sizes.contest,
        peer="redlock-py",
        least_rate=3.0,
        most_share=2.0,
    )


def own_key_each(sizes: Sizes, servers: Sequence[RedisServer]) -> list[Row]:
    """Tasks that do not wait for one another, through one client."""
    rates = own_keys.measure(servers, sizes.async_rounds, sizes.async_pairs, peer=False)
    what = f"pairs/s, {own_keys.TASKS} tasks, a key each, {NODES} nodes"
    return [Row(what, rates.ours, "/s", None, rates.load)]


def plan(sizes: Sizes) -> list[Step]:
    """Return what to measure, in order, each on servers of its own."""
    measures: list[tuple[str, int, Callable[[Sizes, Sequence[RedisServer]], list[Row]]]] = [
        ("pair, sync", NODES, pair),
        ("1 stopped", 2 * NODES, partial(stopped, 1)),
        ("2 stopped", 2 * NODES, partial(stopped, 2)),
        ("20 waiters", NODES, waiters),
        ("a key each", NODES, own_key_each),
    ]
    return [
        partial(on_servers, f"redlock: {what}", count, partial(measure, sizes))
        for what, count, measure in measures
    ]


def steps(quick: bool) -> list[Step]:
    """Return what to measure, in order."""
    return plan(QUICK if quick else FULL)
