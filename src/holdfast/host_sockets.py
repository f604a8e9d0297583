"""Sockets by which the processes of one host reach each other and see that another has died (S33).

Rule 1: each client has a stream socket that listens and never reads. Whoever connects hears nothing
        while the owner lives, also when it is stopped, and a hang-up the moment it has died.
Rule 2: only a refused connection or a hang-up proves death. A missing file or no permission proves
        nothing: then the TTL decides.
Rule 3: wake-ups are datagrams, sent after the commit, never blocking; one that is lost costs the
        waiter its timer, nothing more.
Rule 4: a forked child closes what it inherited without a goodbye, or it would keep the dead alive.
"""

from __future__ import annotations

import errno
import os
import secrets
import select
import socket
import time
from contextlib import suppress

ALIVE = ".alive"
WAKE = ".wake"
BACKLOG = 4096
SETTLED = 60.0  # seconds
MOST_PEERS = 256
LARGEST = 60_000  # bytes in one datagram
SUPPORTED = hasattr(socket, "AF_UNIX") and os.path.isdir("/proc/self/fd")


class HostSockets:
    """The two sockets of one client, in the folder beside the database."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._own = os.getpid()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        # A path through the folder's descriptor is short, however long the folder's own is: socket
        # paths end at 108 bytes.
        self._base = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.address = secrets.token_hex(8)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._wake = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._wake.setblocking(False)
        for bound, kind in ((self._listener, ALIVE), (self._wake, WAKE)):
            bound.bind(self._path(self.address, kind))
            os.chmod(os.path.join(folder, self.address + kind), 0o600)
        self._listener.listen(BACKLOG)
        self._accepted: list[socket.socket] = []
        self._peers: dict[str, socket.socket] = {}  # watched: silent while they live
        self.sweep()

    def _path(self, address: str, kind: str) -> str:
        return f"/proc/self/fd/{self._base}/{address}{kind}"

    # --- Wake-ups. ---

    @property
    def wake_file(self) -> int:
        """The descriptor that turns readable when a message has come."""
        return self._wake.fileno()

    def read(self) -> list[bytes]:
        """Return the messages that have come."""
        messages: list[bytes] = []
        with suppress(BlockingIOError, OSError):
            while len(messages) < 1000:
                messages.append(self._wake.recv(LARGEST + 4096))
        return messages

    def send(self, address: str, message: bytes) -> bool:
        """Send a message without blocking; False if it surely did not arrive."""
        try:
            self._wake.sendto(message, self._path(address, WAKE))
            return True
        except OSError:
            return False

    # --- Liveness. ---

    def watch(self, address: str) -> socket.socket | None:
        """Return a connection that hangs up when that client dies; None if it cannot be had."""
        peer = self._peers.get(address)
        if peer is None:
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            peer.setblocking(False)
            try:
                peer.connect(self._path(address, ALIVE))
            except OSError:
                peer.close()
                return None
            self._remember(address, peer)
        return peer

    def _remember(self, address: str, peer: socket.socket) -> None:
        if len(self._peers) >= MOST_PEERS:
            self.unwatch(next(iter(self._peers)))
        self._peers[address] = peer

    def watched_file(self, address: str) -> int | None:
        """Return the descriptor of the connection to that client, if there is one."""
        peer = self._peers.get(address)
        return None if peer is None else peer.fileno()

    def unwatch(self, address: str) -> None:
        """Close the connection to that client."""
        peer = self._peers.pop(address, None)
        if peer is not None:
            peer.close()

    def dead(self, address: str) -> bool:
        """Say whether that client has surely died."""
        if address == self.address:
            return False
        peer = self._peers.get(address)
        if peer is not None:
            poll = select.poll()
            poll.register(peer, select.POLLIN)
            return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
        probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        probe.setblocking(False)
        try:
            probe.connect(self._path(address, ALIVE))
        except OSError as error:
            probe.close()
            return error.errno == errno.ECONNREFUSED
        self._remember(address, probe)  # each client asks another only once
        return False

    def drain(self) -> None:
        """Make room in the queue of those who watch us, so that it never fills up.

        Accepted connections are kept, silent as before, until the other side closes them.
        """
        with suppress(BlockingIOError, OSError):
            while True:
                self._accepted.append(self._listener.accept()[0])
        gone = [one for one in self._accepted if _hung_up(one)]
        for one in gone:
            self._accepted.remove(one)
            one.close()

    def sweep(self) -> None:
        """Remove the files that dead clients left behind."""
        for name in os.listdir(self._folder):
            address = name.removesuffix(ALIVE)
            if address not in (name, self.address) and self._is_old(name):
                probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                probe.setblocking(False)
                try:
                    probe.connect(self._path(address, ALIVE))
                except OSError as error:
                    if error.errno == errno.ECONNREFUSED:
                        for kind in (WAKE, ALIVE):
                            with suppress(OSError):
                                os.unlink(os.path.join(self._folder, address + kind))
                finally:
                    probe.close()

    def _is_old(self, name: str) -> bool:
        """Say whether a file is old enough that its owner must have come to `listen` by now."""
        with suppress(OSError):
            return time.time() - os.stat(os.path.join(self._folder, name)).st_mtime > SETTLED
        return False

    # --- The end. ---

    def close(self) -> None:
        """Close everything; the files are removed by the process that made them."""
        if os.getpid() == self._own:
            for kind in (WAKE, ALIVE):
                with suppress(OSError):
                    os.unlink(os.path.join(self._folder, self.address + kind))
        for one in (*self._peers.values(), *self._accepted, self._listener, self._wake):
            one.close()
        self._peers.clear()
        self._accepted.clear()
        with suppress(OSError):
            os.close(self._base)


def _hung_up(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
