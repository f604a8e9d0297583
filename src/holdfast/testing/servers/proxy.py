"""A TCP proxy on the loopback interface that does to connections what networks do."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from selectors import EVENT_READ, DefaultSelector
from types import TracebackType
from typing import Self

from .link import Faults, Link, Trap
from .ports import listen

_PATIENCE = 10.0  # for the thread; it never takes that long


class Proxy:
    """Forwards to a port of this machine until told otherwise; listens as soon as it is made.

    What a method says holds when it returns: after `cut` not one byte passes. `heal` ends every
    fault at once. What is a request or a reply here is a chunk of bytes that arrived together.
    """

    def __init__(self, target: int, listener: socket.socket | None = None) -> None:
        self._target = target
        self._faults = Faults()
        self._links: list[Link] = []
        self.requests = 0  # that clients have sent so far
        self.lag = 0.0  # seconds until it notices that something came, from either side
        self._listener = listener or listen()
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._open = True
        # One thread owns all of the above; a method hands it what to do and waits.
        self._orders: SimpleQueue[tuple[Callable[[], None], Future[None]]] = SimpleQueue()
        self._bell, self._rope = socket.socketpair()
        self._selector = DefaultSelector()
        self._selector.register(self._listener, EVENT_READ)
        self._selector.register(self._bell, EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="holdfast-proxy", daemon=True)
        self._thread.start()

    @property
    def connections(self) -> int:
        """How many connections are open; one that ends while it is cut is open until `heal`."""
        return len(self._links)

    @property
    def clients(self) -> int:
        """How many of them have a client that has not hung up, whatever the server does then."""
        return sum(not link.abandoned for link in list(self._links))

    # --- Faults. ---

    def cut(self) -> None:
        """Let nothing pass, in either direction, nor any connection end; new ones stay silent."""
        self._change(cut=True)

    def heal(self) -> None:
        """End all faults. What was cut or held arrives now; connections that lost replies end."""

        def heal() -> None:
            self._faults = Faults()
            self._drop([link for link in self._links if link.lossy])

        self._order(heal)

    def drop_replies(self, count: int | None = None) -> None:
        """Forward requests and lose what is answered: on all connections, or the first `count`."""
        self._change(lossy=math.inf if count is None else count)

    def drop_next_reply(self, matching: bytes) -> threading.Event:
        """Forward the next request that contains these bytes, lose its reply, end the connection.

        The event that is returned is set when that has happened.
        """
        trap = Trap(matching)
        self._order(lambda: self._faults.traps.append(trap))
        return trap.sprung

    def drop_pushes(self) -> None:
        """Lose what the server sends to connections that have subscribed to something."""
        self._change(pushes_lost=True)

    def hold_pushes(self) -> None:
        """Keep what the server sends to connections that have subscribed, until `heal`."""
        self._change(pushes_held=True)

    def delay(self, seconds: float) -> None:
        """Let every reply that arrives from now on take that much longer."""
        self._change(delay=seconds)

    def lead_to(self, target: int) -> None:
        """Forward new connections to another port; those that are open stay where they are."""
        self._order(lambda: setattr(self, "_target", target))

    def close_all(self) -> None:
        """Reset all connections; new ones are welcome."""
        self._order(lambda: self._drop(list(self._links)))

    def close(self) -> None:
        """Reset all connections and accept no more."""
        if self._thread.is_alive():
            self._order(self._end)
            self._thread.join()
            self._selector.close()
            self._bell.close()
            self._rope.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _change(self, **faults: float) -> None:
        self._order(lambda: vars(self._faults).update(faults))

    def _order(self, action: Callable[[], None]) -> None:
        if not self._thread.is_alive():
            raise ValueError("the proxy is closed")
        done: Future[None] = Future()
        self._orders.put((action, done))
        self._rope.send(b"!")
        done.result(_PATIENCE)

    # --- The thread. ---

    def _run(self) -> None:
        timeout: float | None = None
        while self._open:
            ready = {key.fileobj: key.data for key, _ in self._selector.select(timeout)}
            if self.lag:
                time.sleep(self.lag)
            now = time.monotonic()
            moving = {link for link in ready.values() if link is not None}
            if self._listener in ready:
                moving |= self._accept()
            if self._bell in ready:
                self._obey()
                moving.update(self._links)  # the faults may have changed
            moving.update(link for link in self._links if link.due(self._faults) <= now)
            # In the order in which they came, so that what was cut first arrives first.
            for link in [link for link in self._links if link in moving]:
                self._advance(link, now)
            due = min((link.due(self._faults) for link in self._links), default=math.inf)
            timeout = None if due == math.inf else max(0.0, due - time.monotonic())

    def _accept(self) -> set[Link]:
        try:
            client, _ = self._listener.accept()
        except OSError:  # it has thought better of it
            return set()
        link = Link(client, self._target)
        self._links.append(link)
        return {link}

    def _obey(self) -> None:
        self._bell.recv(4096)
        while not self._orders.empty():
            action, done = self._orders.get()
            action()
            done.set_result(None)

    def _advance(self, link: Link, now: float) -> None:
        self.requests += link.advance(self._faults, now)
        if link.over:
            self._drop([link])
            return
        for end, events in link.interest(self._faults):
            self._watch(end, events, link)

    def _drop(self, links: list[Link]) -> None:
        for link in links:
            for end in link.ends:
                self._watch(end, 0, link)
            self._links.remove(link)
            link.close()

    def _watch(self, end: socket.socket, events: int, link: Link) -> None:
        key = self._selector.get_map().get(end)
        if key is None and events:
            self._selector.register(end, events, link)
        elif key is not None and not events:
            self._selector.unregister(end)
        elif key is not None and key.events != events:
            self._selector.modify(end, events, link)

    def _end(self) -> None:
        self._drop(list(self._links))
        self._listener.close()
        self._open = False
