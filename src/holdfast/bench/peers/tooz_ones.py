"""tooz: one interface to many stores, from OpenStack."""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar

from ..contestant import Contestant, insisting
from ..handle import PATIENCE, Handle


class Tooz(Contestant):
    """Its coordinator, one for a process; a subclass says the URL."""

    name = "tooz"
    package = "tooz"
    lacks = "no token, no queue"
    scheme: ClassVar[str]

    def open(self) -> None:
        """Start a coordinator."""
        all_of_them = self.place.addresses
        url = self.scheme.format(
            address=all_of_them[0] if all_of_them else "",
            addresses=",".join(all_of_them),
            folder=self.place.folder,
            ttl=max(1, int(self.ttl)),
        )
        # A member's name must be its own; two processes have two.
        member = f"member-{id(self)}-{import_module('os').getpid()}".encode()
        self._coordinator = import_module("tooz.coordination").get_coordinator(url, member)
        self._coordinator.start(start_heart=True)
        self.stack.callback(self._coordinator.stop)

    def lock(self, key: str) -> Handle:
        """See Contestant."""
        lock = self._coordinator.get_lock(key.replace("/", "-").encode())
        return Handle(insisting(lambda: lock.acquire(blocking=PATIENCE)), lock.release)
