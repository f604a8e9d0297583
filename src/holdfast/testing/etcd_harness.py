"""Harnesses for the etcd engine: a single server, or a cluster, each server behind a proxy."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from .behind_proxy import Part, Several
from .harness import Harness, defines
from .servers import EtcdCluster, EtcdServer, Proxy, ServerMissing, etcd_program, need
from .servers.etcd import until_healthy
from .servers.ports import LOOPBACK


class EtcdPart(Part):
    """A member behind its proxy. One that has lost its data is refused by the others."""

    server: EtcdServer
    forget = Harness.forget

    def __init__(self, server: EtcdServer, proxy: Proxy) -> None:
        super().__init__(proxy)
        self.server = server

    def restart(self, *, keep_data: bool) -> None:
        """Kill it and start it again."""
        super().restart(keep_data=keep_data)
        until_healthy([self.server])


class SingleEtcdPart(EtcdPart):
    """The only server of its cluster, which alone has all the data."""

    forget = Part.forget

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
    def _data(self) -> Any:
        return self.server.directory / "data"

    @property
    def _copy(self) -> Any:
        return self.server.directory / "copy"


class _EtcdServers(Several):
    """Some servers, each behind a proxy of its own."""

    on_a_log = True
    shortest_ttl = 1.0  # etcd counts in seconds
    moment = 0.005
    part: type[EtcdPart] = EtcdPart

    servers: list[EtcdServer]
    proxies: list[Proxy]

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._parts: list[EtcdPart] = []
        self.servers, self.proxies = [], []

    def missing(self) -> str:
        """Say how to install the server."""
        try:
            etcd_program()
        except ServerMissing as missing:
            return str(missing)
        return ""

    def start(self) -> None:
        """Start the servers and their proxies."""
        program = need(etcd_program)
        with ExitStack() as stack:  # a start that fails halfway leaves nothing running
            self.servers = self._start_servers(stack, program)
            self.proxies = [stack.enter_context(Proxy(server.port)) for server in self.servers]
            self._stack = stack.pop_all()
        pairs = zip(self.servers, self.proxies, strict=True)
        self._parts = [self.part(server, proxy) for server, proxy in pairs]
        self.url = "etcd://" + ",".join(f"{LOOPBACK}:{proxy.port}" for proxy in self.proxies)

    def _start_servers(self, stack: ExitStack, program: str) -> list[EtcdServer]:
        raise NotImplementedError

    def stop(self) -> None:
        """Stop them all."""
        for server in self.servers:
            if server.running:
                server.terminate()  # all at once
        self._parts = []
        self._stack.close()

    def parts(self) -> Sequence[EtcdPart]:
        """Return each server with its proxy."""
        return self._parts

    def bears(self, *hooks: str) -> bool:
        """Say whether each server does."""
        return defines(self.part, *hooks)

    def connections(self) -> int:
        """Return how many connections the proxies have open."""
        return sum(proxy.connections for proxy in self.proxies)

    def logs(self) -> dict[str, str]:
        """Return what each server has written since it was last started."""
        return {f"server-{number}.log": one.log() for number, one in enumerate(self.servers)}


class EtcdHarness(_EtcdServers):
    """etcd:// on one server."""

    lab = "etcd"
    part = SingleEtcdPart

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options

    @property
    def server(self) -> EtcdServer:
        """The server."""
        return self.servers[0]

    @property
    def proxy(self) -> Proxy:
        """What stands before it."""
        return self.proxies[0]

    def restart(self, *, keep_data: bool) -> None:
        """Kill it and start it again."""
        self._parts[0].restart(keep_data=keep_data)

    def _start_servers(self, stack: ExitStack, program: str) -> list[EtcdServer]:
        return [stack.enter_context(EtcdServer(program, **self._options))]


class EtcdClusterHarness(_EtcdServers):
    """etcd:// on three servers, of which clients know all."""

    lab = "etcd-3"
    nodes = 3

    cluster: EtcdCluster

    def _start_servers(self, stack: ExitStack, program: str) -> list[EtcdServer]:
        self.cluster = stack.enter_context(EtcdCluster(self.nodes, program))
        return self.cluster.servers

    def heal(self) -> None:
        """End all faults of the proxies, between servers too."""
        self.cluster.heal()
        super().heal()
