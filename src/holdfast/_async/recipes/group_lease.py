"""The lease of several locks at once: held while all are, lost as soon as one is (S28)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NoReturn

from ..._concurrency import AsyncEvent
from ...errors import LeaseLost, NotSupported
from ...model import Reason, Seconds
from ..lease import AsyncLease
from ..tenure import AsyncTenure


class AsyncLeaseGroup:
    """Several leases, in the order the caller named the locks."""

    def __init__(self, parts: Sequence[AsyncLease], cancel_on_loss: bool) -> None:
        self.parts = tuple(parts)
        self._cancel_on_loss = cancel_on_loss
        self._tenures: list[AsyncTenure] = []
        self._lost: AsyncEvent | None = None

    @property
    def name(self) -> str:
        """The names of all parts."""
        return " + ".join(part.name for part in self.parts)

    @property
    def token(self) -> NoReturn:
        """There is no common token: each resource checks the one of its own lock."""
        raise NotSupported(
            f"The group {self.name!r} has no single token: use lease.parts[i].token, the token of "
            "the lock that guards the resource."
        )

    @property
    def held(self) -> bool:
        """Whether every part can be relied on at this instant."""
        return all(part.held for part in self.parts)

    @property
    def nested(self) -> bool:
        """Whether the same task has entered it more than once: never."""
        return False

    @property
    def leaf(self) -> None:
        """What `current_lease()` shows inside: nothing new, a group has no token of its own."""
        return None

    @property
    def suspended(self) -> bool:
        """Whether any part is."""
        return any(part.suspended for part in self.parts)

    @property
    def released(self) -> bool:
        """Whether every part was given back by its holder."""
        return all(part.released for part in self.parts)

    @property
    def lost_reason(self) -> Reason | None:
        """Why the first lost part was lost; None while none is."""
        return next((part.lost_reason for part in self.parts if part.lost_reason), None)

    @property
    def lost(self) -> AsyncEvent:
        """An event that is set when any part is lost."""
        if self._lost is None:
            self._lost = AsyncEvent()
            self.watch_loss(self._lost.set)
        return self._lost

    def remaining(self) -> float:
        """Return the seconds that are confirmed for all parts."""
        return min(part.remaining() for part in self.parts)

    async def ensure_held(self, margin: Seconds = 0.0) -> None:
        """Return if every part is held for `margin` more seconds; see Lease.ensure_held."""
        for part in self.parts:
            await part.ensure_held(margin)

    async def extend(self, ttl: Seconds | None = None) -> None:
        """Set the time left of every part; see Lease.extend."""
        for part in self.parts:
            await part.extend(ttl)

    async def release(self) -> bool | None:
        """Give all parts back, last first: True if all were ours, None if any is unanswered."""
        answers = []
        problem: BaseException | None = None
        for part in reversed(self.parts):
            try:
                answers.append(await part.release())
            except BaseException as error:  # the others must be let go all the same
                problem = problem or error
        if problem is not None:
            raise problem
        return None if None in answers else all(answers)

    def error(self) -> LeaseLost:
        """Return the error of the part that cannot be relied on."""
        return next((part for part in self.parts if part.lost_reason), self.parts[0]).error()

    def watch_loss(self, callback: Callable[[], None]) -> None:
        """Call `callback`, which must not block, whenever a part is lost."""
        for part in self.parts:
            part.watch_loss(callback)

    async def __aenter__(self) -> AsyncLeaseGroup:
        self._tenures.append(AsyncTenure(self, self._cancel_on_loss))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._tenures.pop().leave(error)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {'held' if self.held else 'over'}>"
