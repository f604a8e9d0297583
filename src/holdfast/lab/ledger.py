"""The ledger: takes, looks at and gives back leases, and writes down what matters about each."""

from __future__ import annotations

from typing import Any

from ..clocks import boot_clock
from ..errors import EngineUnavailable, LeaseLost, NotAcquired, OutcomeUnknown
from ..events import Event, Renewed
from .diary import Diary
from .hands import Client, Hands, Lease

EXPECTED = (EngineUnavailable, OutcomeUnknown, LeaseLost, NotAcquired)


class Ledger:
    """The leases of one client."""

    def __init__(self, hands: Hands, client: Client, diary: Diary) -> None:
        self._hands, self._client, self._diary = hands, client, diary
        self._leases: dict[str, Lease] = {}
        client.listen(self._hear)

    async def take(self, key: str, timeout: float, value: str | None = None) -> Lease | None:
        """Take a lock, or with a `value` the lead of an election; None, and a line, if not."""
        if value is None:
            lock = self._client.lock(key, on_lost=self._lost)
        else:
            lock = self._client.election(key, value, on_lost=self._lost)._lock
        asked = boot_clock()
        try:
            lease = await self._hands.acquire(lock, timeout)
        except EXPECTED as error:
            self._diary.note("missed", key=key, asked=asked, why=type(error).__name__)
            return None
        if lease is None:
            self._diary.note("missed", key=key, asked=asked, why="busy")
            return None
        self._leases[lease.owner] = lease
        self._diary.note(
            "got",
            key=key,
            asked=asked,
            owner=lease.owner,
            token=lease.token,
            deadline=deadline_of(lease),
        )
        return lease

    async def leave(self, lease: Lease) -> bool | None:
        """Give a lock back."""
        self._leases.pop(lease.owner, None)
        lost = lease.lost_reason is not None
        self._diary.note("leaving", owner=lease.owner, deadline=deadline_of(lease))
        answer = await self._hands.release(lease)
        self._diary.note(
            "left", key=lease.name, owner=lease.owner, token=lease.token, answer=answer, lost=lost
        )
        return answer

    def look(self, lease: Lease) -> bool:
        """Ask the lease whether it is held."""
        at = boot_clock()
        held, lost = lease.held, lease.lost.is_set()
        self._diary.note("look", at=at, owner=lease.owner, held=held, lost=lost)
        return bool(held)

    def _lost(self, lease: Lease, reason: Any) -> None:
        if lease.owner in self._leases:  # else it was given back, and found gone
            self._diary.note(
                "lost",
                owner=lease.owner,
                token=lease.token,
                reason=str(reason),
                deadline=deadline_of(lease),
            )

    def _hear(self, event: Event) -> None:
        if isinstance(event, Renewed):
            lease = self._leases.get(event.owner)
            if lease is not None:
                self._diary.note("renewed", owner=event.owner, deadline=deadline_of(lease))


def stalled(diary: Diary, start: float, end: float) -> None:
    """Write down that this process did not run for a while."""
    diary.note("stalled", since=start, until=end)


def deadline_of(lease: Lease) -> float:
    """Return until when a lease can be relied on, on the clock of the diaries."""
    return float(boot_clock() + lease._deadline - lease._runtime.clock())
