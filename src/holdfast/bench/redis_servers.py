"""Throw-away Redis servers for one measurement, or the sentence that says why there are none."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ..errors import MissingDriver
from .floor import Row

if TYPE_CHECKING:
    from ..testing.servers import RedisServer


def on_servers(
    what: str, count: int, measure: Callable[[Sequence[RedisServer]], list[Row]]
) -> list[Row]:
    """Return what is measured on that many new servers; they are stopped afterwards."""
    try:
        # Here, not above: it needs what a user of locks has not installed.
        from ..testing.servers import RedisServer, ServerMissing
    except ImportError as error:
        return [no_figure(what, f'needs {error.name}: pip install "holdfast[testing]"')]
    try:
        with ExitStack() as stack:
            return measure([stack.enter_context(RedisServer()) for _ in range(count)])
    except (ServerMissing, MissingDriver) as error:
        return [no_figure(what, str(error))]


@contextmanager
def apart(servers: Sequence[RedisServer]) -> Iterator[str]:
    """Keep servers and client on different cores, as if on different machines; say so in a note.

    Else the scheduler puts them together or apart as it likes, from run to run, and a request costs
    60 µs or 280 µs accordingly.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        yield ""
        return
    for server in servers:
        for thread in os.listdir(f"/proc/{server.pid}/task"):
            os.sched_setaffinity(int(thread), cores[-1:])
    os.sched_setaffinity(0, cores[:-1])
    try:
        yield ", servers on another core"
    finally:
        os.sched_setaffinity(0, cores)
        for server in servers:
            for thread in os.listdir(f"/proc/{server.pid}/task"):
                os.sched_setaffinity(int(thread), cores)


def no_figure(what: str, why: str) -> Row:
    """Return the row of something that could not be measured."""
    return Row(what, math.nan, "", None, why)


def addresses_of(servers: Sequence[RedisServer]) -> list[str]:
    """Return host:port of each."""
    return [f"127.0.0.1:{server.port}" for server in servers]


def url_of(addresses: Sequence[str]) -> str:
    """Return the URL of the locks there: redis:// on one server, redlock:// on more."""
    return f"{'redis' if len(addresses) == 1 else 'redlock'}://{','.join(addresses)}"


def cpu_of(servers: Sequence[RedisServer]) -> float:
    """Return the CPU seconds that servers have used since they were started."""
    return sum(
        float(value)
        for server in servers
        for name, value in figures(server, "cpu").items()
        if name in ("used_cpu_sys", "used_cpu_user")
    )


def figures(server: RedisServer, section: str) -> dict[str, str]:
    """Return a section of what INFO says."""
    lines = str(server.command("INFO", section)).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)
