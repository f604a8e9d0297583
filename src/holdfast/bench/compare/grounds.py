"""The servers of each engine, started once for all its rows: as the tests start them."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ..contestant import Place
from ..redis_servers import addresses_of, url_of

if TYPE_CHECKING:
    from ...testing.servers import ServerProcess

NODES = 5
CONNECTIONS = "400"  # each thread of some contestants has one


class NoGround(Exception):
    """An engine cannot be measured here; one sentence says why."""


@dataclass
class Ground:
    """Where one engine is, the servers that it has, and their version."""

    place: Place
    servers: Sequence[ServerProcess] = ()
    version: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def pids(self) -> list[int]:
        """The processes of the servers."""
        return [server.pid for server in self.servers if server.running]

    def problem(self) -> str:
        """Say which server is gone; empty while all serve."""
        for server in self.servers:
            if not server.running:
                return f"the {server.name} server on port {server.port} has ended"
            if server.paused:
                return f"the {server.name} server on port {server.port} stands still"
        return ""


def _version(program: str, *arguments: str) -> str:
    """Return the number in what a program says of its version."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=20)
    found = re.search(r"\d+\.\d+(\.\d+)*", done.stdout + done.stderr)
    return found[0] if found else ""


def _memory(stack: ExitStack) -> Ground:
    return Ground(Place("memory", f"memory://{uuid4().hex}"), version="")


def _sqlite(stack: ExitStack) -> Ground:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-"))
    place = Place("sqlite", f"sqlite://{folder}/locks.db", (), folder)
    return Ground(place, version=sqlite3.sqlite_version)


def _redis(stack: ExitStack) -> Ground:
    from ...testing.servers import redis_program

    return redis_ground(stack, "redis", 1, redis_program())


def _valkey(stack: ExitStack) -> Ground:
    from ...testing.servers import valkey_program

    ground = redis_ground(stack, "valkey", 1, valkey_program())
    ground.place = ground.place._replace(url=ground.place.url.replace("redis://", "valkey://"))
    return ground


def _redlock(stack: ExitStack) -> Ground:
    from ...testing.servers import redis_program

    return redis_ground(stack, "redlock", NODES, redis_program())


def redis_ground(stack: ExitStack, engine: str, nodes: int, program: str) -> Ground:
    """Start so many servers that know nothing of each other."""
    from ...testing.servers import RedisServer

    servers = [stack.enter_context(RedisServer(program)) for _ in range(nodes)]
    stack.callback(_end_together, servers)
    addresses = tuple(addresses_of(servers))
    return Ground(Place(engine, url_of(addresses), addresses), servers, _version(program, "-v"))


def _end_together(servers: Sequence[ServerProcess]) -> None:
    for server in servers:
        if server.running:
            server.terminate()


def _zookeeper(stack: ExitStack) -> Ground:
    from ...testing.servers import ZooKeeperServer

    server = stack.enter_context(ZooKeeperServer())
    found = re.search(r"version: ([\d.]+)", server.command("srvr"))
    return _single("zookeeper", server, found[1] if found else "")


def _etcd(stack: ExitStack) -> Ground:
    from ...testing.servers import EtcdServer, etcd_program

    server = stack.enter_context(EtcdServer())
    return _single("etcd", server, _version(etcd_program(), "--version"))


def _postgresql(stack: ExitStack) -> Ground:
    from ...testing.servers import PostgresServer, postgres_program

    server = stack.enter_context(PostgresServer(options={"max_connections": CONNECTIONS}))
    return _single("postgresql", server, _version(postgres_program(), "--version"))


def _dynamodb(stack: ExitStack) -> Ground:
    from ...testing.dynamodb_harness import DynamoDBHarness
    from ...testing.servers import DynamoDBServer

    server = stack.enter_context(DynamoDBServer())
    url = DynamoDBHarness.url_of(server.port)
    found = re.search(r"Version:\s*([\d.]+)", server.log())
    return _single("dynamodb", server, found[1] if found else "", url)


def _single(engine: str, server: Any, version: str, url: str = "") -> Ground:
    place = Place(engine, url or server.url, (f"127.0.0.1:{server.port}",))
    return Ground(place, [server], version)


GROUNDS: dict[str, Callable[[ExitStack], Ground]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "redis": _redis,
    "valkey": _valkey,
    "redlock": _redlock,
    "zookeeper": _zookeeper,
    "etcd": _etcd,
    "postgresql": _postgresql,
    "dynamodb": _dynamodb,
}


@contextmanager
def ground_of(engine: str) -> Iterator[Ground]:
    """Start what an engine needs, and stop it at the end; `NoGround` says why it cannot be."""
    try:
        # Here, not above: it needs what a user of locks has not installed.
        from ...testing.servers import ServerFailed, ServerMissing
    except ImportError as error:
        raise NoGround(f'needs {error.name}: pip install "holdfast[testing]"') from None
    with ExitStack() as stack:
        try:
            ground = GROUNDS[engine](stack)
        except (ServerMissing, ImportError) as error:
            raise NoGround(str(error)) from None
        except ServerFailed as error:
            raise NoGround(" ".join(str(error).split())[:300]) from None
        yield ground
