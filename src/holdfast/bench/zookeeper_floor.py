"""zookeeper:// beside a bare create and delete, and beside kazoo's own lock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import connect
from ..errors import MissingDriver
from .contestant import Place
from .floor import Row, Step
from .handle import Handle, pair_of
from .peers.zookeeper_ones import Kazoo, kazoo_client
from .redis_peers import Peer, repeated
from .redis_servers import apart, no_figure
from .timing import alternate, ratio

if TYPE_CHECKING:
    from ..testing.servers import ZooKeeperServer

TTL = 30.0
PAIRS = 50
WAITERS = 100
DATA = b"x" * 60  # about as much as a claim of ours says
BESIDE = "bare create + delete"


def bare_lock(client: Any, key: str) -> Handle:
    """The floor: what ZooKeeper takes to make and delete a numbered node."""
    path = f"/bare/{key}"
    client.ensure_path(path)
    held: list[str] = []

    def take() -> None:
        held.append(client.create(f"{path}/x-", DATA, ephemeral=True, sequence=True))

    return Handle(take, lambda: client.delete(held.pop()))


def pair(rounds: int, server: ZooKeeperServer) -> list[Row]:
    """An uncontended acquire and release, blocking."""
    address = f"127.0.0.1:{server.port}"
    with ExitStack() as stack, apart([server]) as note:
        client = stack.enter_context(connect(server.url))
        lock = client.lock("pair", ttl=TTL)

        def ours() -> None:
            lease = lock.acquire()
            assert lease is not None
            lease.release()

        bare = pair_of(bare_lock(kazoo_client(stack, address, TTL), "pair"))
        peer = Peer.of(Kazoo, Place("zookeeper", server.url, (address,)))
        stack.callback(peer.close)
        for first in (bare, ours, peer.repeated(1)):
            first()
        floor, mine, theirs = alternate(
            rounds, PAIRS, repeated(PAIRS, bare), repeated(PAIRS, ours), peer.repeated(PAIRS)
        )
    rows = [ratio(f"pair, sync / {BESIDE}", floor, mine, 1.1), peer.row(BESIDE, floor, theirs)]
    return [row._replace(note=row.note + note) for row in rows]


def hand_overs(turns: int, server: ZooKeeperServer) -> list[Row]:
    """Threads of one client that all want the same lock: requests for each hand-over."""
    count = turns // WAITERS or 1
    with connect(server.url) as client:
        lock = client.lock("hand-over", ttl=TTL)

        def work() -> None:
            for _ in range(count):
                lease = lock.acquire()
                assert lease is not None
                lease.release()

        work()
        threads = [threading.Thread(target=work) for _ in range(WAITERS)]
        before, started = server.figure("zk_packets_received"), time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        passed, total = time.monotonic() - started, count * WAITERS
        requests = (server.figure("zk_packets_received") - before) / total
    note = f"claim, list, watch, label of the holder; list, delete; {total / passed:,.0f} turns/s"
    return [Row(f"requests per turn of {WAITERS} waiters", requests, "", None, note)]


def on_server(what: str, measure: Callable[[ZooKeeperServer], list[Row]]) -> list[Row]:
    """Return what is measured on a new server, which is stopped afterwards."""
    try:
        # Here, not above: it needs what a user of locks has not installed.
        from ..testing.servers import ServerMissing, ZooKeeperServer
    except ImportError as error:
        return [no_figure(what, f'needs {error.name}: pip install "holdfast[testing]"')]
    try:
        with ZooKeeperServer() as server:
            return measure(server)
    except (ServerMissing, MissingDriver) as error:
        return [no_figure(what, str(error))]


def steps(quick: bool) -> list[Step]:
    """Return what to measure, in order."""
    return [
        partial(on_server, "zookeeper: pair", partial(pair, 15 if quick else 61)),
        partial(on_server, "zookeeper: hand-overs", partial(hand_overs, 300 if quick else 2_000)),
    ]
