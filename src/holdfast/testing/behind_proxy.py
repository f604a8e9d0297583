"""Harnesses of servers behind proxies: what the network does to them, and what happens to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .harness import Harness
from .servers import Proxy


class Server(Protocol):
    """What all servers of `holdfast.testing.servers` that can be restarted have in common."""

    def pause(self) -> None:
        """Stop it."""

    def resume(self) -> None:
        """Let it go on."""

    def restart(self, *, keep_data: bool) -> None:
        """Kill it and start it again."""


class Way(Harness):
    """One way to a server, through a proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy

    def cut(self) -> None:
        """Let nothing pass."""
        self.proxy.cut()

    def heal(self) -> None:
        """End all faults of the network."""
        self.proxy.heal()

    def lose_replies(self) -> None:
        """Let requests pass, and lose what is answered."""
        self.proxy.drop_replies()

    def slow(self, seconds: float) -> None:
        """Let every reply take that much longer."""
        self.proxy.delay(seconds)

    def reset(self) -> None:
        """Break all connections."""
        self.proxy.close_all()


class Part(Way):
    """A server behind its proxy: what faults can do to it, to it alone."""

    server: Server

    def pause(self) -> None:
        """Stop it."""
        self.server.pause()

    def resume(self) -> None:
        """Let it go on."""
        self.server.resume()

    def restart(self, *, keep_data: bool) -> None:
        """Kill it and start it again."""
        self.server.restart(keep_data=keep_data)

    def forget(self) -> None:
        """Kill it and start it with nothing."""
        self.restart(keep_data=False)


class Several(Harness):
    """Some servers, each behind a proxy of its own: what is done to one of them is done to all."""

    def parts(self) -> Sequence[Part]:
        """Return each server with its proxy."""
        raise NotImplementedError

    def cut(self) -> None:
        """Cut all servers off from clients."""
        for part in self.parts():
            part.cut()

    def heal(self) -> None:
        """End all faults of the proxies."""
        for part in self.parts():
            part.heal()

    def pause(self) -> None:
        """Stop all servers."""
        for part in self.parts():
            part.pause()

    def resume(self) -> None:
        """Let all servers go on."""
        for part in self.parts():
            part.resume()
