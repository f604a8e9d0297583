"""One question to several servers, and their answers as they come.

Rule 1: as soon as enough servers have said yes, which is an integer, the rest is not waited for.
Rule 2: each server's answer comes once, a reply or the error instead of it: in time, or late. Late
        is what comes after whoever asked has gone on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .wire import Reply

if TYPE_CHECKING:
    import asyncio


class Late:
    """Stands for an answer that was not there yet when whoever asked went on."""

    def __repr__(self) -> str:
        return "LATE"


LATE: Final = Late()


def unheard(number: int, answer: Reply) -> None:
    """Take no note of an answer."""


class Round:
    """The answers to one question, by the number of the server."""

    __slots__ = (
        *("_late", "_missing", "_yes", "answers", "closed", "decided", "enough", "forgotten"),
        "waiter",
    )

    def __init__(
        self, count: int, enough: int = 0, late: Callable[[int, Reply], None] = unheard
    ) -> None:
        self.answers: list[Reply] = [LATE] * count
        self.enough = enough  # how many yeses decide; 0: all answers are waited for
        self.decided = count == 0  # there is nothing to wait for any more
        self.closed = False  # nobody waits any more
        self.forgotten = False  # nor does anybody want to know
        self.waiter: asyncio.Future[Any] | None = None  # is told when it is decided
        self._late = late
        self._missing = count
        self._yes = 0

    def put(self, number: int, answer: Reply) -> None:
        """Take the answer of one server."""
        if self.closed:
            self._late(number, answer)
            return
        self.answers[number] = answer
        self._missing -= 1
        if type(answer) is int:
            self._yes += 1
        if not self._missing or self._yes == self.enough > 0:
            self.decided = True
            if self.waiter is not None and not self.waiter.done():
                self.waiter.set_result(None)

    def forget(self) -> None:
        """Take no note of answers any more: whoever asked will not know what they are about."""
        self.closed = self.forgotten = True
        self._late = unheard


class Place:
    """Where one server's answer goes; stands for a future that only this round waits for."""

    __slots__ = ("_done", "_number", "_round")

    def __init__(self, round: Round, number: int) -> None:
        self._round = round
        self._number = number
        self._done = False

    @property
    def late(self) -> bool:
        """Whether nobody waits for it any more, though it matters."""
        return self._round.closed and not self.done()

    def done(self) -> bool:
        """Say whether it is there, or will never be missed."""
        return self._done or self._round.forgotten

    def set_result(self, reply: Reply) -> None:
        """Take the reply."""
        self._done = True
        self._round.put(self._number, reply)

    set_exception = set_result
