"""Harnesses for ZooKeeper: one real server or three, each behind a proxy that can cut it off."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.exceptions import NotEmptyError  # type: ignore[import-untyped]

from .behind_proxy import Part, Several
from .harness import defines
from .servers import Proxy, ServerMissing, ZooKeeperServer, need, zookeeper_program
from .servers.ports import LOOPBACK
from .servers.zookeeper import TICK
from .servers.zookeeper_ensemble import ZooKeeperEnsemble


class ZooKeeperPart(Part):
    """One server behind its proxy, as clients see it."""

    server: ZooKeeperServer

    def __init__(self, server: ZooKeeperServer, proxy: Proxy) -> None:
        super().__init__(proxy)
        self.server = server

    def flush(self) -> None:
        """Delete everything that is ours."""
        kazoo = KazooClient(f"{LOOPBACK}:{self.server.port}")
        kazoo.start()
        try:
            for name in set(kazoo.get_children("/")) - {"zookeeper"}:
                while True:
                    try:
                        kazoo.delete(f"/{name}", recursive=True)
                        break
                    except NotEmptyError:
                        pass  # somebody came in meanwhile
        finally:
            kazoo.stop()
            kazoo.close()


class SinglePart(ZooKeeperPart):
    """The only server, which alone has all the data."""

    def keep_copy(self) -> None:
        """Copy its files while it writes them."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._data, self._copy)

    def roll_back(self) -> None:
        """Kill it and start it with the copy."""
        self.server.kill()
        shutil.rmtree(self._data)
        shutil.copytree(self._copy, self._data)
        self.server.start()

    @property
    def _data(self) -> Path:
        return self.server.directory / "data"

    @property
    def _copy(self) -> Path:
        return self.server.directory / "copy"


class _ZooKeeperServers(Several):
    """Servers behind proxies. The clients know the tick, so that long margins can be confirmed."""

    on_a_log = True
    shortest_ttl = 1.5
    moment = 0.005
    brief = 0.3
    part: type[ZooKeeperPart] = ZooKeeperPart
    why_not = "ZooKeeper has no such thing, or Java does not run with another clock"

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._stack = ExitStack()
        self._parts: list[ZooKeeperPart] = []

    def missing(self) -> str:
        """Say how to install the server."""
        try:
            zookeeper_program()
        except ServerMissing as missing:
            return str(missing)
        return ""

    def start(self) -> None:
        """Start the servers and their proxies."""
        need(zookeeper_program)
        with ExitStack() as stack:
            servers = self._start_servers(stack)
            self._parts = [
                self.part(server, stack.enter_context(Proxy(server.port))) for server in servers
            ]
            self._stack = stack.pop_all()
        hosts = ",".join(f"{LOOPBACK}:{part.proxy.port}" for part in self._parts)
        self.url = f"zookeeper://{hosts}?tick_time={TICK}"

    def stop(self) -> None:
        """Stop them all."""
        self._parts = []
        self._stack.close()

    def parts(self) -> Sequence[ZooKeeperPart]:
        """Return each server with its proxy."""
        return self._parts

    def bears(self, *hooks: str) -> bool:
        """Say whether each server does."""
        return defines(self.part, *hooks)

    def restart(self, *, keep_data: bool) -> None:
        """Kill all servers and start them again."""
        for part in self._parts:
            part.restart(keep_data=keep_data)

    def connections(self) -> int:
        """Return how many clients are connected.

        A server that is just starting forgets some connections, and never hangs up.
        """
        return sum(part.proxy.clients for part in self._parts)

    def logs(self) -> dict[str, str]:
        """Return what each server has written since it was last started."""
        return {f"server-{n}.log": part.server.log() for n, part in enumerate(self._parts)}

    def _start_servers(self, stack: ExitStack) -> list[ZooKeeperServer]:
        raise NotImplementedError


class ZooKeeperHarness(_ZooKeeperServers):
    """zookeeper:// on one server."""

    lab = "zookeeper"
    part = SinglePart

    @property
    def server(self) -> ZooKeeperServer:
        """The server."""
        return self._parts[0].server

    @property
    def proxy(self) -> Proxy:
        """What stands before it."""
        return self._parts[0].proxy

    def _start_servers(self, stack: ExitStack) -> list[ZooKeeperServer]:
        return [stack.enter_context(ZooKeeperServer(**self._options))]


@cache
def _shared_server() -> ZooKeeperServer:
    return ZooKeeperServer()


class SharedZooKeeperHarness(ZooKeeperHarness):
    """The same on the one server that all of these have in a process: Java is slow to start.

    It runs until the process ends.
    """

    lab = ""

    def _start_servers(self, stack: ExitStack) -> list[ZooKeeperServer]:
        server = _shared_server()
        if not server.running:
            server.start()
        if server.paused:
            server.resume()
        return [server]


class ZooKeeperEnsembleHarness(_ZooKeeperServers):
    """zookeeper:// on three servers that elect a leader."""

    lab = "zookeeper-3"
    nodes = 3

    ensemble: ZooKeeperEnsemble

    def _start_servers(self, stack: ExitStack) -> list[ZooKeeperServer]:
        self.ensemble = stack.enter_context(ZooKeeperEnsemble(self.nodes, **self._options))
        return self.ensemble.servers
