"""What all guards share: those who listen, and what they are told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NoReturn

from ...errors import StaleToken
from ...events import Accepted, Adopted, Event, Refused
from ...fencing import Fence, Floors, refuse

logger = logging.getLogger("holdfast")


class AsyncGuard:
    """Keeps writers with an old token out of a resource; subclasses know the kind of resource."""

    kind = "guard"  # what events call it: the kind of resource, never where it is

    def __init__(self) -> None:
        self._listeners: list[Callable[[Event], object]] = []

    def listen(self, callback: Callable[[Event], object]) -> None:
        """Call `callback` with every event: Accepted, Refused, Adopted.

        It is called by whoever writes, when that is over, so it must not block; what it raises is
        logged and goes no further.
        """
        self._listeners.append(callback)

    def _accepted(self, resource: str, floors: Floors, fence: Fence) -> None:
        """Tell that somebody was let in, once what was done there is stored."""
        if self._listeners:
            self._tell(
                Accepted(
                    name=resource,
                    engine=self.kind,
                    namespace="",
                    domain=fence.domain,
                    mode=fence.mode,
                    seen=floors.seen,
                    offered=fence.token,
                )
            )

    def _refuse(self, resource: str, floors: Floors, fence: Fence) -> NoReturn:
        """Tell that somebody was kept out by these floors, and raise it."""
        try:
            refuse(resource, floors, fence)
        except StaleToken as error:
            self._refused(error, fence)
            raise

    def _refused(self, error: StaleToken, fence: Fence) -> None:
        """Tell that somebody was kept out."""
        if self._listeners:
            self._tell(
                Refused(
                    name=error.resource,
                    engine=self.kind,
                    namespace="",
                    domain=fence.domain,
                    mode=fence.mode,
                    seen=error.seen,
                    offered=error.offered,
                    error=str(error),
                )
            )

    def _adopted(self, resource: str, previous: str, domain: str) -> None:
        """Tell that a resource has moved to another domain."""
        logger.warning("%r moved from tokens of %r to tokens of %r.", resource, previous, domain)
        if self._listeners:
            self._tell(
                Adopted(
                    name=resource,
                    engine=self.kind,
                    namespace="",
                    previous=previous,
                    domain=domain,
                )
            )

    def _tell(self, event: Event) -> None:
        for callback in self._listeners:
            try:
                callback(event)
            except Exception:
                logger.exception("A listener of a %s guard failed.", self.kind)
