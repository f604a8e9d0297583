"""Answers to requests: what kazoo fills in, and who is told at once, in kazoo's own thread."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._concurrency import Mutex
from .errors import CERTAIN

Link = Callable[["Answer"], object]


class Answer:
    """One answer to come, as kazoo's code wants it; it never blocks.

    Kazoo's own passes every answer through one more thread before somebody hears of it.
    """

    __slots__ = ("_asked", "_links", "_mutex", "_note", "_ready", "exception", "proven", "value")

    def __init__(self, asked: float, note: Callable[[float], float]) -> None:
        self.proven = -math.inf  # since when the session's time runs, if this was a write
        self._asked = asked
        self._note = note
        self.value: Any = None
        self.exception: Exception | None = None
        self._mutex = Mutex()
        self._ready = False
        self._links: list[Link] = []

    def ready(self) -> bool:
        """Whether it has come."""
        return self._ready

    def set(self, value: Any = None) -> None:
        """Take the answer."""
        self._settle(value, None)

    def set_exception(self, error: Exception) -> None:
        """Take an error for an answer."""
        self._settle(None, error)

    def _settle(self, value: Any, error: Exception | None) -> None:
        with self._mutex:
            if self._ready:
                return  # a connection that ends may fail what was answered just before
            self.value, self.exception, self._ready = value, error, True
            if error is None or isinstance(error, CERTAIN):
                self.proven = self._note(self._asked)
        for link in self._links:
            link(self)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Return the answer, or raise it; kazoo asks only once it is there."""
        if self.exception is not None:
            raise self.exception
        return self.value

    def rawlink(self, link: Link) -> None:
        """Call `link` with this once, when the answer comes, in kazoo's thread; now if it has."""
        with self._mutex:
            if not self._ready:
                self._links.append(link)
                return
        link(self)
