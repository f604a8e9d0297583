"""Harnesses for the Redis engines: real servers, each behind a proxy that can cut it off."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from .behind_proxy import Several, Way
from .harness import defines
from .redis_part import RedisPart
from .servers import Proxy, RedisServer, ServerMissing, need, redis_program, valkey_program
from .servers.ports import LOOPBACK
from .servers.programs import faketime_library

LAG = 0.008  # seconds: more than a look at the servers takes, less than any node time-out


class _RedisServers(Several):
    """Some servers, each behind a proxy of its own; `options` are those of `RedisServer`."""

    shortest_ttl = 0.3

    servers: list[RedisServer]
    proxies: list[Proxy]

    def __init__(self, nodes: int, program: Callable[[], str], options: dict[str, Any]) -> None:
        self.nodes, self._program, self._options = nodes, program, options
        self._replicated, self._ways = False, 1
        self._stack = ExitStack()
        self.servers, self.proxies = [], []
        self._parts: list[RedisPart] = []

    def missing(self) -> str:
        """Say how to install the server."""
        try:
            self._program()
        except ServerMissing as missing:
            return str(missing)
        return ""

    def equip(self, *hooks: str) -> None:
        """Give servers a clock of their own, a disk, a replica, if these hooks need one."""
        if "step_clock" in hooks:
            faketime_library()
            self._options = {**self._options, "fake_clock": True}
        if {"restart", "roll_back"} & set(hooks):
            self._options = {**self._options, "persist": True}
        if "roll_back" in hooks:  # who writes everything to disk at once has no older copy
            lines = {**self._options.get("options", {}), "appendfsync": "everysec"}
            self._options = {**self._options, "options": lines}
        self._replicated = self._replicated or "fail_over" in hooks
        if "links" in hooks:
            self._ways = 2

    def start(self) -> None:
        """Start the servers and their proxies."""
        program = need(self._program)
        with ExitStack() as stack:  # a start that fails halfway leaves nothing running
            self.servers, self._parts = [], []
            for _ in range(self.nodes):
                server = stack.enter_context(RedisServer(program, **self._options))
                self.servers.append(server)
                ways = [stack.enter_context(Proxy(server.port)) for _ in range(self._ways)]
                self._parts.append(RedisPart(server, ways))
                if self._replicated:
                    self._parts[-1].replicate(stack, program, self._options)
            self.proxies = [part.proxy for part in self._parts]
            self._stack = stack.pop_all()
        self.url = self._make_url([proxy.port for proxy in self.proxies])

    def stop(self) -> None:
        """Stop them all."""
        for part in self._parts:
            part.terminate()  # all at once
        self._parts = []
        self._stack.close()

    def parts(self) -> Sequence[RedisPart]:
        """Return each server with its proxy."""
        return self._parts

    def links(self) -> Sequence[Sequence[Way]]:
        """Return the proxies: those of `url`, and those of the other ways."""
        others = range(1, self._ways)
        return [self._parts, *([Way(p.proxies[way]) for p in self._parts] for way in others)]

    def lab_urls(self, ttl: float) -> Sequence[str]:
        """Return a URL for each way."""
        return [self._make_url([one.proxy.port for one in way]) for way in self.links()]

    def bears(self, *hooks: str) -> bool:
        """Say whether each server does."""
        return defines(RedisPart, *hooks)

    def restart(self, *, keep_data: bool) -> None:
        """Kill all servers and start them again."""
        for part in self._parts:
            part.restart(keep_data=keep_data)

    def connections(self) -> int:
        """Return how many connections the proxies have open."""
        return sum(proxy.connections for part in self._parts for proxy in part.proxies)

    def logs(self) -> dict[str, str]:
        """Return what each server has written since it was last started."""
        servers = [server for part in self._parts for server in part.servers]
        return {f"server-{number}.log": one.log() for number, one in enumerate(servers)}

    def _make_url(self, ports: list[int]) -> str:
        raise NotImplementedError


class RedisHarness(_RedisServers):
    """redis:// on one server."""

    lab = "redis"

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

    lab = "valkey"

    def __init__(self, **options: Any) -> None:
        super().__init__(valkey_program, **options)


class RedlockHarness(_RedisServers):
    """redlock:// on several servers that know nothing of each other."""

    lab = "redlock"
    shortest_ttl = 1.0  # a node has a twentieth of it to answer
    moment = 0.05

    def __init__(
        self, nodes: int = 5, program: Callable[[], str] = redis_program, **options: Any
    ) -> None:
        super().__init__(nodes, program, options)

    def start(self) -> None:
        """Start them; HOLDFAST_SLOW_NODES=2,4 lets these lag behind the others."""
        super().start()
        slow = [int(one) for one in os.environ.get("HOLDFAST_SLOW_NODES", "").split(",") if one]
        for number in set(slow) & set(range(self.nodes)):
            for proxy in self._parts[number].proxies:
                proxy.lag = LAG

    def lab_urls(self, ttl: float) -> Sequence[str]:
        """Let nodes have as long to answer as they may, and come back soon after they forgot."""
        self.recovery = 2 * ttl
        options = f"?node_timeout={ttl / 20:g}&max_ttl={self.recovery:g}"
        return [f"{url}{options}" for url in super().lab_urls(ttl)]

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
