"""A cluster of etcd servers, of which each can be cut off from the others.

What servers say to each other goes through one proxy per server. The proxy knows by a header of
etcd's (X-Server-From) who speaks on a connection, so that it can cut off one of several.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from .errors import CommandRefused
from .etcd import EtcdServer, until_healthy
from .link import Faults, Link
from .ports import reserved_port
from .proxy import Proxy

_FROM = re.compile(rb"X-Server-From: *([0-9a-f]+)", re.IGNORECASE)
_CUT = Faults(cut=True)
_ENOUGH = 4096  # bytes in which the headers of a request end


class _PeerLink(Link):
    """A connection between two servers, once it is known whose it is."""

    def __init__(self, client: socket.socket, target: int) -> None:
        super().__init__(client, target)
        self.source: str | None = None  # in hexadecimal; empty = it does not say

    def advance(self, faults: Faults, now: float) -> int:
        """Move what can be moved now, but nothing before it is known whose it is."""
        if self.source is None:
            try:
                seen = self._client.recv(_ENOUGH, socket.MSG_PEEK)
            except OSError:
                return 0
            if seen and b"\r\n\r\n" not in seen and len(seen) < _ENOUGH:
                return 0
            found = _FROM.search(seen)
            self.source = found[1].decode() if found else ""
        return super().advance(faults, now)


class PeerProxy(Proxy):
    """What stands before the port for peers of one server."""

    def __init__(self, target: int) -> None:
        self._cut_from: frozenset[str] = frozenset()
        super().__init__(target)

    def cut_from(self, *sources: int) -> None:
        """Let nothing pass of connections that these servers have made."""
        self._order(lambda: setattr(self, "_cut_from", frozenset(f"{one:x}" for one in sources)))

    def _accept(self) -> set[Link]:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return set()
        link = _PeerLink(client, self._target)
        self._links.append(link)
        return {link}

    def _advance(self, link: Link, now: float) -> None:
        usual = self._faults
        if isinstance(link, _PeerLink) and link.source in self._cut_from:
            self._faults = _CUT
        try:
            super()._advance(link, now)
        finally:
            self._faults = usual


class EtcdCluster:
    """Some servers that elect a leader among them."""

    def __init__(self, size: int = 3, program: str | None = None, *, fsync: bool = False) -> None:
        self._size, self._program, self._fsync = size, program, fsync
        self._stack = ExitStack()
        self.servers: list[EtcdServer] = []
        self.peers: list[PeerProxy] = []

    def start(self) -> Self:
        """Start them all, and return when they have a leader."""
        with ExitStack() as stack:
            ports = [reserved_port(stack) for _ in range(self._size)]
            self.peers = [stack.enter_context(PeerProxy(port)) for port in ports]
            members = {f"e{number}": one.port for number, one in enumerate(self.peers)}
            self.servers = [
                stack.enter_context(
                    EtcdServer(
                        self._program,
                        fsync=self._fsync,
                        members=members,
                        member=member,
                        peer_port=port,
                        options={"pre-vote": "true"},  # as is usual from 3.5 on
                    )
                )
                for member, port in zip(members, ports, strict=True)
            ]
            until_healthy(self.servers)
            self._stack = stack.pop_all()
        self.ids = [server.member_id() for server in self.servers]
        return self

    def stop(self) -> None:
        """Stop them all."""
        for server in self.servers:
            if server.running:
                server.terminate()  # all at once
        self._stack.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # --- Who leads. ---

    def leader(self, among: Sequence[int] | None = None) -> int:
        """Return the number of the leader, of which one of these servers must know; wait for it."""
        asked = range(self._size) if among is None else among
        end = time.monotonic() + 20.0
        while time.monotonic() < end:
            for number in asked:
                try:
                    status = self.servers[number].ask("maintenance/status")
                except (OSError, CommandRefused):
                    continue
                leader = int(status.get("leader", 0))
                if leader in self.ids and (among is None or self.ids.index(leader) in among):
                    return self.ids.index(leader)
            time.sleep(0.02)
        raise TimeoutError("the cluster has no leader")

    # --- Partitions. ---

    def isolate(self, *numbers: int) -> None:
        """Cut these servers off from the rest, and from each other; clients still reach them."""
        apart = {self.ids[number] for number in numbers}
        for number, proxy in enumerate(self.peers):
            others = set(self.ids) - {self.ids[number]}
            proxy.cut_from(*(others if number in numbers else apart))

    def heal(self) -> None:
        """End all partitions."""
        for proxy in self.peers:
            proxy.cut_from()

    def until_healthy(self) -> None:
        """Return when all servers answer."""
        until_healthy(self.servers)
