"""etcd:// beside two bare transactions, and beside the lock of etcd3gw."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from .. import aio, connect
from ..errors import MissingDriver
from .contestant import Place
from .floor import Row, Step
from .handle import Handle, pair_of
from .peers.etcd_ones import Etcd3gw
from .redis_peers import Peer, repeated
from .redis_servers import apart, no_figure
from .timing import alternate, ratio

if TYPE_CHECKING:
    from ..testing.servers import EtcdServer

TTL = 30
PAIRS = 50
WAITERS = 100
VALUE = b"x" * 100  # about as much as a claim of ours says
BESIDE = "two bare transactions"


class Bare:
    """The floor: put a key under a lease if it is not there, delete it if it is the same."""

    def __init__(self, stack: ExitStack, address: str) -> None:
        from ..etcd_link import GRANT, TXN, Link, from_url
        from ..etcd_link import messages as m

        link = Link(from_url(f"etcd://{address}"))
        stack.callback(link.close)
        self._lease = link.call(GRANT, m.LeaseGrantRequest(TTL=10 * TTL), 5.0).ID
        line, _ = link._begin(5.0)
        self._transact = line.calls[TXN]  # as grpcio gives it

    def lock(self, key: str) -> Handle:
        """Return a lock of this name."""
        from ..etcd_link import messages as m

        transact, name, held = self._transact, f"bare/{key}".encode(), [0]
        absent = m.Compare(target=1, key=name)
        put = m.RequestOp(request_put=m.PutRequest(key=name, value=VALUE, lease=self._lease))
        delete = m.RequestOp(request_delete_range=m.DeleteRangeRequest(key=name))

        def take() -> None:
            made = transact(m.TxnRequest(compare=[absent], success=[put]), timeout=5.0)
            held[0] = made.header.revision

        def give() -> None:
            same = m.Compare(target=1, key=name, create_revision=held[0])
            transact(m.TxnRequest(compare=[same], success=[delete]), timeout=5.0)

        return Handle(take, give)


def pair(rounds: int, server: EtcdServer) -> list[Row]:
    """An uncontended acquire and release, blocking."""
    address = f"127.0.0.1:{server.port}"
    with ExitStack() as stack, apart([server]) as note:
        client = stack.enter_context(connect(server.url))
        lock = client.lock("pair", ttl=TTL)

        def ours() -> None:
            lease = lock.acquire()
            assert lease is not None
            lease.release()

        bare = pair_of(Bare(stack, address).lock("pair"))
        peer = Peer.of(Etcd3gw, Place("etcd", server.url, (address,)))
        stack.callback(peer.close)
        for first in (bare, ours, peer.repeated(1)):
            first()
        floor, mine, theirs = alternate(
            rounds, PAIRS, repeated(PAIRS, bare), repeated(PAIRS, ours), peer.repeated(PAIRS)
        )
    rows = [ratio(f"pair, sync / {BESIDE}", floor, mine, 1.2), peer.row(BESIDE, floor, theirs)]
    if not peer.problem:
        faster = ratio(f"{peer.name} / ours", mine, theirs, 1.7)
        rows.append(faster._replace(at_least=True))
    return [row._replace(note=row.note + note) for row in rows]


def hand_overs(turns: int, server: EtcdServer) -> list[Row]:
    """Tasks of one client that all want the same lock: requests for each turn."""
    count = max(1, turns // WAITERS)

    async def measure() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        async with aio.connect(server.url) as client:
            lock = client.lock("hand-over", ttl=TTL)

            async def work(times: int) -> None:
                for _ in range(times):
                    lease = await lock.acquire()
                    assert lease is not None
                    await lease.release()

            await work(1)
            before, started = _transactions(server), loop.time()
            await asyncio.gather(*(work(count) for _ in range(WAITERS)))
            return _transactions(server) - before, loop.time() - started

    total = count * WAITERS
    requests, passed = asyncio.run(measure())
    note = f"claim, look, release; {total / passed:,.0f} turns/s"
    what = f"transactions per turn, {WAITERS} waiters"
    return [Row(what, requests / total, "", 3.1, note)]


def _transactions(server: EtcdServer) -> float:
    return server.metric("grpc_server_handled_total", "Txn")


def on_server(what: str, measure: Callable[[EtcdServer], list[Row]]) -> list[Row]:
    """Return what is measured on a new server, which is stopped afterwards."""
    try:
        # Here, not above: it needs what a user of locks has not installed.
        from ..testing.servers import EtcdServer, ServerMissing
    except ImportError as error:
        return [no_figure(what, f'needs {error.name}: pip install "holdfast[testing]"')]
    try:
        with EtcdServer() as server:
            return measure(server)
    except (ServerMissing, MissingDriver) as error:
        return [no_figure(what, str(error))]


def steps(quick: bool) -> list[Step]:
    """Return what to measure, in order."""
    return [
        partial(on_server, "etcd: pair", partial(pair, 15 if quick else 61)),
        partial(on_server, "etcd: hand-overs", partial(hand_overs, 300 if quick else 2_000)),
    ]
