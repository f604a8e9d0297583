"""What being observed costs: an uncontended pair on Redis with listeners, beside one without."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .. import Client, connect
from ..errors import MissingDriver
from ..observe import Observer, logs, prometheus
from .floor import Row, Step
from .redis_pair import pair_of
from .redis_peers import repeated
from .redis_servers import addresses_of, apart, no_figure, on_servers, url_of
from .timing import alternate, ratio

if TYPE_CHECKING:
    from ..testing.servers import RedisServer

AIM = 1.15


class Sizes(NamedTuple):
    """How much to measure."""

    rounds: int
    pairs: int  # in a round


# Long rounds: what a listener has not heard when one ends is paid for by the next contestant.
QUICK, FULL = Sizes(7, 500), Sizes(21, 1_000)


def _counted() -> Observer:
    from prometheus_client import CollectorRegistry

    return prometheus(registry=CollectorRegistry())


def _logged() -> Observer:
    quiet = logging.Logger("bench", logging.INFO)  # as in production: routine is DEBUG
    quiet.addHandler(logging.NullHandler())
    return logs(logger=quiet)


OBSERVERS: dict[str, Callable[[], Observer]] = {"Prometheus": _counted, "logs": _logged}


def pair(sizes: Sizes, servers: Sequence[RedisServer]) -> list[Row]:
    """An uncontended acquire and release, blocking, with each listener and with none."""
    url = url_of(addresses_of(servers))
    with ExitStack() as stack:

        def client() -> Client:
            return stack.enter_context(connect(url))

        try:
            made = {name: make() for name, make in OBSERVERS.items()}
        except (ImportError, MissingDriver) as error:
            return [no_figure("pair, observed", str(error))]
        plain, observed = client(), {name: client() for name in made}
        for name, listener in made.items():
            observed[name].listen(listener)
        runs = [pair_of(one) for one in (plain, *observed.values())]
        for run in runs:
            run()  # connections and scripts
        with apart(servers) as note:
            floor, *others = alternate(
                sizes.rounds, sizes.pairs, *(repeated(sizes.pairs, run) for run in runs)
            )
    aims = {"Prometheus": AIM}
    rows = [
        ratio(f"pair, sync, with {name} / without", floor, times, aims.get(name))
        for name, times in zip(observed, others, strict=True)
    ]
    return [row._replace(note=row.note + note) for row in rows]


def steps(quick: bool) -> list[Step]:
    """Return what to measure, in order."""
    measure = partial(pair, QUICK if quick else FULL)
    return [partial(on_servers, "pair, observed", 1, measure)]
