"""Harnesses for the Redis engines: real servers, each behind a proxy that can cut it off."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from .harness import Harness
from .servers import Proxy, RedisServer, need, redis_program, valkey_program
from .servers.ports import LOOPBACK


class _RedisServers(Harness):
    """Some servers, each behind a proxy of its own; `options` are those of `RedisServer`."""

    shortest_ttl = 0.3

    servers: list[RedisServer]
    proxies: list[Proxy]

    def __init__(self, nodes: int, program: Callable[[], str], options: dict[str, Any]) -> None:
        self._nodes, self._program, self._options = nodes, program, options
        self._stack = ExitStack()
        self.servers, self.proxies = [], []

    def start(self) -> None:
        """Start the servers and their proxies."""
        program = need(self._program)
        with ExitStack() as stack:  # a start that fails halfway leaves nothing running
            self.servers, self.proxies = [], []
            for _ in range(self._nodes):
                server = stack.enter_context(RedisServer(program, **self._options))
                self.servers.append(server)
                self.proxies.append(stack.enter_context(Proxy(server.port)))
            self._stack = stack.pop_all()
        self.url = self._make_url([proxy.port for proxy in self.proxies])

    def stop(self) -> None:
        """Stop them all."""
        for server in self.servers:
            if server.running:
                server.terminate()  # all at once
        self._stack.close()

    def cut(self) -> None:
        """Cut all servers off."""
        for proxy in self.proxies:
            proxy.cut()

    def heal(self) -> None:
        """End all faults of the proxies."""
        for proxy in self.proxies:
            proxy.heal()

    def pause(self) -> None:
        """Stop all servers."""
        for server in self.servers:
            server.pause()

    def resume(self) -> None:
        """Let all servers go on."""
        for server in self.servers:
            server.resume()

    def restart(self, *, keep_data: bool) -> None:
        """Kill all servers and start them again."""
        for server in self.servers:
            server.restart(keep_data=keep_data)

    def _make_url(self, ports: list[int]) -> str:
        raise NotImplementedError


class RedisHarness(_RedisServers):
    """redis:// on one server."""

    def __init__(self, program: Callable[[], str] = redis_program, **options: Any) -> None:
        super().__init__(1, program, options)

    @property
    def server(self) -> RedisServer:
        """The server."""
        return self.servers[0]

    @property
    def proxy(self) -> Proxy:
        """What stands before it."""
        return self.proxies[0]

    def _make_url(self, ports: list[int]) -> str:
        return f"redis://{LOOPBACK}:{ports[0]}/0"


class ValkeyHarness(RedisHarness):
    """redis:// on one Valkey server."""

    def __init__(self, **options: Any) -> None:
        super().__init__(valkey_program, **options)


class RedlockHarness(_RedisServers):
    """redlock:// on several servers that know nothing of each other."""

    shortest_ttl = 1.0  # a node has a twentieth of it to answer
    moment = 0.05

    def __init__(
        self, nodes: int = 5, program: Callable[[], str] = redis_program, **options: Any
    ) -> None:
        super().__init__(nodes, program, options)

    def _make_url(self, ports: list[int]) -> str:
        return "redlock://" + ",".join(f"{LOOPBACK}:{port}" for port in ports)


class DirectRedlockHarness(RedlockHarness):
    """The same without proxies in between, which share one interpreter with the clients.

    Nodes have longer than the usual 50 ms to answer: a test machine with more processes than
    cores now and then lets one wait longer than that, and the suite is not about it.
    Cut off is here who is stopped; what was sent meanwhile comes late.
    """

    node_timeout = 0.5

    def start(self) -> None:
        """Start the servers."""
        super().start()
        ports = [server.port for server in self.servers]
        self.url = f"{self._make_url(ports)}?node_timeout={self.node_timeout}"

    def cut(self) -> None:
        """Stop all servers."""
        self.pause()

    def heal(self) -> None:
        """Let all servers go on."""
        self.resume()
