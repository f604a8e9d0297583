"""Throw-away Redis servers for one measurement, or the sentence that says why there are none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ..errors import MissingDriver
from . import cores
from .floor import Row

if TYPE_CHECKING:
    from ..testing.servers import RedisServer, ServerProcess


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
def apart(servers: Sequence[ServerProcess]) -> Iterator[str]:
    """Keep servers and this process on different cores, and these awake; give a note on that."""
    with cores.awake(), cores.apart([server.pid for server in servers]) as note:
        yield note


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
