"""An uncontended pair, blocking: ours, the bare scripts and the peers in the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from .. import Client, connect
from .bare_scripts import bare_pair
from .floor import Row
from .redis_peers import TTL, MakePair, Peer, repeated
from .redis_servers import url_of
from .timing import alternate, ratio


def pair_of(client: Client) -> Callable[[], None]:
    """Return a function that takes and gives back one lock of ours."""
    lock = client.lock("pair", ttl=TTL)

    def pair() -> None:
        lease = lock.acquire()
        assert lease is not None
        lease.release()

    return pair


def compare(
    addresses: Sequence[str],
    peers: Mapping[str, MakePair],
    rounds: int,
    pairs: int,
    *,
    beside: str,
    aim: float,
) -> list[Row]:
    """Return our ratio to the floor, with its aim, and that of each peer."""
    with ExitStack() as stack:
        ours = pair_of(stack.enter_context(connect(url_of(addresses))))
        bare = bare_pair(stack, addresses)
        others = [Peer(name, make, addresses) for name, make in peers.items()]
        for one in others:
            stack.callback(one.close)
        for first in (bare, ours, *(one.repeated(1) for one in others)):
            first()  # connections and scripts
        floor, mine, *theirs = alternate(
            rounds,
            pairs,
            repeated(pairs, bare),
            repeated(pairs, ours),
            *(one.repeated(pairs) for one in others),
        )
    return [
        ratio(f"pair, sync / {beside}", floor, mine, aim),
        *(one.row(beside, floor, times) for one, times in zip(others, theirs, strict=True)),
    ]
