"""One Redis server and the proxies before it: what faults can do to it, to it alone."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from .behind_proxy import Part
from .servers import Proxy, RedisServer
from .servers.ports import LOOPBACK

FULL = "3mb"  # less than what an empty server uses: it is full at once
SYNCED = "master_link_status:up"


class RedisPart(Part):
    """A server behind its proxy; with a replica behind another, if it is to fail over."""

    server: RedisServer

    def __init__(self, server: RedisServer, proxies: Sequence[Proxy]) -> None:
        super().__init__(proxies[0])
        self.server, self.proxies = server, proxies
        self._replica: RedisServer | None = None
        self._replication: Proxy | None = None

    @property
    def servers(self) -> list[RedisServer]:
        """The server, and its replica if it has one."""
        return [self.server] if self._replica is None else [self.server, self._replica]

    def terminate(self) -> None:
        """Ask all that runs to end, and do not wait."""
        for server in self.servers:
            if server.running:
                server.terminate()

    # --- Its data. ---

    def keep_copy(self) -> None:
        """Copy its files while it writes them: of the last command there may be only a part."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._data, self._copy)

    def roll_back(self) -> None:
        """Kill it and start it with the copy."""
        self.server.kill()
        shutil.rmtree(self._data)
        shutil.copytree(self._copy, self._data)
        self.server.start()

    def step_clock(self, seconds: float) -> None:
        """Set its wall clock."""
        self.server.step_clock(seconds)

    def evict(self) -> None:
        """Let it throw out every key it has, and give it its memory back."""
        self.server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
        self.server.command("CONFIG", "SET", "maxmemory", 1)
        with suppress(Exception):  # refused once nothing is left to throw out
            self.server.command("SET", "filler", "x")
        self.server.command("CONFIG", "SET", "maxmemory", 0)
        self.server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")

    def flush(self) -> None:
        """Delete all keys."""
        self.server.command("FLUSHALL")

    def kick(self) -> None:
        """Close all connections, and forget all scripts."""
        self.server.command("SCRIPT", "FLUSH")
        for kind in ("normal", "pubsub"):
            self.server.command("CLIENT", "KILL", "TYPE", kind)

    @property
    def _data(self) -> Path:
        return self.server.directory / "data"

    @property
    def _copy(self) -> Path:
        return self.server.directory / "copy"

    # --- The replica. ---

    def replicate(self, stack: ExitStack, program: str, options: Mapping[str, Any]) -> None:
        """Start a replica that hears of the server through a proxy of its own."""
        self._replication = stack.enter_context(Proxy(self.server.port))
        self._replica = stack.enter_context(RedisServer(program, **options))
        self._follow(self._replica)

    def part_replica(self) -> None:
        """Let nothing more reach the replica."""
        assert self._replication is not None
        self._replication.cut()

    def fail_over(self) -> None:
        """Kill the server, let the replica take its place; what was killed is the replica then."""
        assert self._replica is not None
        assert self._replication is not None
        old, new = self.server, self._replica
        old.kill()
        new.command("REPLICAOF", "NO", "ONE")
        self.server, self._replica = new, old
        for proxy in self.proxies:
            proxy.lead_to(new.port)
            proxy.close_all()
        self._replication.heal()
        self._replication.lead_to(new.port)
        old.restart(keep_data=False)
        self._follow(old)

    def _follow(self, replica: RedisServer) -> None:
        assert self._replication is not None
        replica.command("REPLICAOF", LOOPBACK, self._replication.port)
        end = time.monotonic() + replica.start_timeout
        while SYNCED not in replica.command("INFO", "replication"):
            if time.monotonic() > end:
                raise TimeoutError("the replica did not follow its server in time")
            time.sleep(0.01)
