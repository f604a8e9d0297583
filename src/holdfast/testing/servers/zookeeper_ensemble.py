"""Several ZooKeeper servers that elect a leader, with a network between them that can be cut."""

from __future__ import annotations

import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .errors import ServerFailed
from .ports import LOOPBACK, reserved_port
from .programs import ZooKeeperProgram
from .proxy import Proxy
from .zookeeper import ZooKeeperServer

START = 30.0  # seconds until they agree
TRIES = 3  # one that starts late may never be let in by the others


class ZooKeeperEnsemble:
    """`count` members. With `links` each reaches each other one through a proxy of their own.

    Members know each other by name, and every Java looks names up in a file of its own: behind the
    name of another member is an address of the loopback network where that proxy listens. For
    elections only the later of two members can call the other: one that is called by an earlier one
    hangs up and calls back, at the address it was told, past all proxies. So a member that was
    killed does not come back here.
    """

    def __init__(
        self,
        count: int = 3,
        *,
        links: bool = False,
        program: ZooKeeperProgram | None = None,
        **options: Any,
    ) -> None:
        self._count, self._linked, self._program, self._options = count, links, program, options
        self.servers: list[ZooKeeperServer] = []
        self._links: dict[tuple[int, int], list[Proxy]] = {}
        self._stack = ExitStack()

    def start(self) -> Self:
        """Start all members and return once one leads and the others follow."""
        for left in reversed(range(TRIES)):
            try:
                return self._start()
            except ServerFailed:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def _start(self) -> Self:
        with ExitStack() as stack:
            ports = [(reserved_port(stack), reserved_port(stack)) for _ in range(self._count)]
            names = [f"zk{n}" if self._linked else LOOPBACK for n in range(self._count)]
            members = [f"{name}:{a}:{b}" for name, (a, b) in zip(names, ports, strict=True)]
            self.servers = [
                ZooKeeperServer(
                    self._program,
                    members=members,
                    number=n + 1,
                    properties=self._lookup(stack, n, ports) if self._linked else {},
                    **self._options,
                )
                for n in range(self._count)
            ]
            for server in self.servers:
                stack.enter_context(server)
            self.until_agreed()
            self._stack = stack.pop_all()
        return self

    def stop(self) -> None:
        """Stop all members."""
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

    # --- Who is who. ---

    @property
    def url(self) -> str:
        """Where clients find all of them."""
        ports = (f"{LOOPBACK}:{server.port}" for server in self.servers)
        return f"zookeeper://{','.join(ports)}"

    def modes(self) -> list[str]:
        """Return what each says that it is."""
        up = [server.running and not server.paused for server in self.servers]
        return [
            server.mode if alive else "" for server, alive in zip(self.servers, up, strict=True)
        ]

    def leader(self) -> int:
        """Return the number of the one that leads, waiting for one if need be."""
        end = time.monotonic() + START
        while True:
            modes = self.modes()
            if modes.count("leader") == 1:
                return modes.index("leader")
            if time.monotonic() > end:
                raise ServerFailed(f"no member leads within {START:g} s: {modes}")
            time.sleep(0.02)

    def followers(self) -> list[int]:
        """Return the numbers of those that follow."""
        return [n for n, mode in enumerate(self.modes()) if mode == "follower"]

    def until_agreed(self) -> None:
        """Return when one leads and all others that run follow."""
        end = time.monotonic() + START
        while True:
            modes = self.modes()
            up = sum(server.running and not server.paused for server in self.servers)
            if modes.count("leader") == 1 and modes.count("follower") == up - 1:
                return
            for server in self.servers:
                if not server.running and server.log():
                    raise ServerFailed(f"a member has ended: {server.log()[-2000:]}")
            if time.monotonic() > end:
                raise ServerFailed(f"the members do not agree within {START:g} s: {modes}")
            time.sleep(0.02)

    # --- The network between them. ---

    def isolate(self, *numbers: int) -> None:
        """Let nothing pass between these members and the others, until `heal`."""
        for (one, other), proxies in self._links.items():
            if (one in numbers) != (other in numbers):
                for proxy in proxies:
                    proxy.cut()

    def heal(self) -> None:
        """Let everything pass again."""
        for proxies in self._links.values():
            for proxy in proxies:
                proxy.heal()

    def _lookup(self, stack: ExitStack, me: int, ports: list[tuple[int, int]]) -> dict[str, object]:
        """Make the links of one member to the others; return how its Java finds them."""
        lines = [f"{LOOPBACK} zk{me}"]
        for other in range(self._count):
            if other == me:
                continue
            address = f"127.1.{me + 1}.{other + 1}"
            self._links[me, other] = [
                stack.enter_context(Proxy(port, _listen(address, port)))
                for port in ports[other][: 2 if me > other else 1]
            ]
            lines.append(f"{address} zk{other}")
        return {"jdk.net.hosts.file": _text_file(stack, "\n".join(lines) + "\n")}


def _listen(address: str, port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return listener


def _text_file(stack: ExitStack, text: str) -> str:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-hosts-"))
    file = Path(folder) / "hosts"
    file.write_text(text)
    return str(file)
