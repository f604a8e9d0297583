"""Mail between the clients of one host: pushed grants, losses, and whom the head should watch.

Rule 1: what a transaction has to say waits in the outbox until its commit; then it leaves, one
        datagram per client, without blocking.
Rule 2: a message that is lost or cannot be sent costs its receiver a timer, nothing more.
Rule 3: the first waiter holds a silent connection to each holder; one that hangs up makes it look.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from ..._concurrency import AsyncReader, AsyncThreadLock
from ...clocks import Clock
from ...host_sockets import LARGEST, SUPPORTED, HostSockets
from ...model import Grant, Reason
from ...rules import validity
from ..inbox import AsyncInbox

Message = list[object]


class AsyncHostMail:
    """The sockets of one client with what comes and goes through them."""

    def __init__(
        self, folder: str, boot: str, clock: Clock, on_loss: Callable[[str, Reason], None]
    ) -> None:
        self.outbox: list[tuple[str, Message]] = []
        self.address = ""
        self._folder = folder
        self._boot = boot
        self._clock = clock
        self._on_loss = on_loss
        self.inbox = AsyncInbox()
        self._sockets: HostSockets | None = None
        self._reader: AsyncReader | None = None
        self._mutex = AsyncThreadLock()  # verbs and the reader's callbacks meet below
        self._watched: dict[str, set[str]] = {}  # address -> our waiters that care

    @property
    def works(self) -> bool:
        """Whether there are sockets; without them waiters look now and then."""
        return self._sockets is not None

    def open(self) -> None:
        """Make the sockets and read what comes, where the platform and the folder allow it."""
        if self._sockets is not None or not SUPPORTED:
            return
        try:
            self._sockets = HostSockets(self._folder)
        except OSError:
            return
        self.address = self._sockets.address
        self._reader = AsyncReader("holdfast-reader")
        self._reader.add(self._sockets.wake_file, self._read)

    # --- Waiting. ---

    def expect(self, owner: str) -> None:
        """Accept grants for a waiter of ours."""
        self.inbox.expect(owner)

    async def wait(self, owner: str, timeout: float) -> Grant | None:
        """Wait for a grant; None = worth looking again."""
        grant = await self.inbox.wait(owner, timeout)
        if grant is not None:
            self.forget(owner)
        return grant

    def forget(self, owner: str) -> None:
        """Expect nothing for this owner any more."""
        self.inbox.forget(owner)
        if self._watched:
            with self._mutex:
                self._stop_watching_for(owner)

    def stop_waiting(self) -> None:
        """End all waits."""
        self.inbox.close()

    # --- Messages. ---

    def post(self) -> None:
        """Send what is in the outbox."""
        letters: dict[str, list[Message]] = {}
        for address, message in self.outbox:
            letters.setdefault(address, []).append(message)
        self.outbox.clear()
        for address, messages in letters.items():
            if address == self.address:
                self._hear(messages)
            elif self._sockets is not None:
                data = json.dumps(messages).encode()
                while len(data) > LARGEST:
                    messages = messages[: len(messages) // 2]  # the rest have their timers
                    data = json.dumps(messages).encode()
                self._sockets.send(address, data)

    def _read(self) -> None:
        if self._sockets is None:
            return
        for data in self._sockets.read():
            try:
                self._hear(json.loads(data))
            except (ValueError, TypeError, AttributeError):
                continue  # not from us

    def _hear(self, messages: list[Message]) -> None:
        for kind, owner, *rest in messages:
            owner = str(owner)
            if kind == "grant":
                token, at, ttl, boot = map(str, rest)
                # Instants of another clock mean nothing here: then the grant is confirmed first.
                ours = boot == self._boot
                until = validity(float(at), float(ttl)) if ours else self._clock()
                self.inbox.deliver(owner, Grant(int(token), until))
            elif kind == "lost":
                self._on_loss(owner, Reason(str(rest[0])))
            elif kind == "head" and isinstance(rest[0], list):
                self._watch_holders(owner, rest[0])

    # --- Life and death. ---

    def dead(self, address: str) -> bool:
        """Say whether that client has surely died."""
        with self._mutex:
            return self._sockets is not None and self._sockets.dead(address)

    def drain(self) -> None:
        """Make room for more who want to watch us."""
        if self._sockets is not None:
            self._sockets.drain()

    def _watch_holders(self, owner: str, addresses: list[str]) -> None:
        """Wake this waiter of ours when one of those clients dies."""
        with self._mutex:
            self._stop_watching_for(owner)
            if self._sockets is None or self._reader is None or owner not in self.inbox.slots:
                return
            for address in addresses:
                if address == self.address:
                    continue
                connection = self._sockets.watch(address)
                if connection is None:
                    if self._sockets.dead(address):
                        self.inbox.nudge(owner)
                elif address in self._watched:
                    self._watched[address].add(owner)
                else:
                    self._watched[address] = {owner}
                    self._watch(connection.fileno(), address)

    def _watch(self, file: int, address: str) -> None:
        assert self._reader is not None
        self._reader.add(file, lambda: self._hung_up(address))

    def _hung_up(self, address: str) -> None:
        with self._mutex:
            owners = self._watched.get(address, set()).copy()
            self._forget_peer(address)
        for owner in owners:
            self.inbox.nudge(owner)

    def _stop_watching_for(self, owner: str) -> None:
        for address, owners in list(self._watched.items()):
            owners.discard(owner)
            if not owners:
                self._forget_peer(address)

    def _forget_peer(self, address: str) -> None:
        self._watched.pop(address, None)
        if self._sockets is not None and self._reader is not None:
            file = self._sockets.watched_file(address)
            if file is not None:
                self._reader.remove(file)
                self._sockets.unwatch(address)

    # --- The end. ---

    def close(self) -> None:
        """Close the sockets and remove their files."""
        self.inbox.close()
        if self._reader is not None:
            self._reader.close()
        if self._sockets is not None:
            self._sockets.close()
        self._sockets = self._reader = None

    def abandon(self) -> None:
        """In a forked child: close our copies of the parent's sockets, and nothing else."""
        if self._sockets is not None:
            self._sockets.close()
