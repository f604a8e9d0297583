"""(Generated from _async/engines/memory.py by tools/unasync.py: do not edit.) memory://, the engine of this process: every client of that URL in it, sync and async alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...clocks import Clock, boot_clock
from ...lock_table import LockTable
from ...memory_state import shared_state
from ...model import Claim, Fault, Grant, Guarantees, Outcome, Queued, Reason, Renewal, Snapshot
from ...rules import validity
from ..engine import Engine, Notice
from ..inbox import Inbox


class MemoryEngine(Engine):
    """Locks between the threads and tasks of one process; gone with it, so nothing is left over."""

    family = "memory"
    instant = True

    def __init__(
        self, url: str, *, max_ttl: float, clock: Clock = boot_clock, state: LockTable | None = None
    ) -> None:
        self.location = url
        self.guarantees = Guarantees(
            engine=self.family,
            fencing=True,
            exclusive=frozenset(
                {
                    Fault.CLIENT_PAUSE,
                    Fault.CLIENT_CRASH,
                    Fault.CLIENT_CLOCK_STEP,
                    Fault.SERVER_CLOCK_STEP,
                }
            ),
            fair=True,
            push=True,
            crash_detection=True,
            expiry="lease",
            min_ttl=0.02,
            max_ttl=max_ttl,
            at_least=True,
        )
        self._clock = clock
        self._state = state or shared_state(url)
        self._own_state = state
        self._inbox = Inbox()
        self._notice: Notice | None = None

    def claim(self, claim: Claim, timeout: float) -> Grant | Queued:
        """See Engine."""
        sent = self._clock()
        answer = self._state.claim(claim, self)
        if isinstance(answer, int):
            return tuple.__new__(Grant, (answer, validity(sent, claim.ttl)))
        return answer

    def queued(self, claim: Claim) -> None:
        """Hear from the state that a grant may be pushed; it comes to the inbox."""
        self._inbox.expect(claim.owner)

    def granted(self, claim: Claim, token: int, at: float) -> bool:
        """Take a grant from the state, whichever thread made it; its clock is ours."""
        return self._inbox.deliver(claim.owner, Grant(token, validity(at, claim.ttl)))

    def revoked(self, owner: str, reason: Reason) -> None:
        """Hear from the state that a holder of ours was removed."""
        if self._notice is not None:
            self._notice(owner, reason)

    def wait(self, claim: Claim, queued: Queued, timeout: float) -> Grant | None:
        """See Engine."""
        grant = self._inbox.wait(claim.owner, timeout)
        if grant is not None:
            self._inbox.forget(claim.owner)
        return grant

    def renew(self, claims: Sequence[Claim], timeout: float) -> list[Renewal]:
        """See Engine."""
        sent = self._clock()
        return [
            Renewal(Outcome.RENEWED, validity(sent, claim.ttl))
            if reason is None
            else Renewal(Outcome.LOST, reason=reason)
            for claim, reason in zip(claims, self._state.renew(claims), strict=True)
        ]

    def release(self, claim: Claim, timeout: float, linger: float = 0.0) -> bool:
        """See Engine."""
        if self._inbox.slots:
            self._inbox.forget(claim.owner)
        return self._state.release(claim, linger)

    def inspect(self, key: str, timeout: float) -> Snapshot:
        """See Engine."""
        return self._state.inspect(key)

    def list(self, prefix: str, timeout: float) -> Sequence[Snapshot]:
        """See Engine."""
        return self._state.list(prefix)

    def force(self, key: str, token: int | None, timeout: float) -> int:
        """See Engine."""
        return self._state.force(key, token)

    def ping(self, timeout: float) -> None:
        """See Engine."""

    def notices(self, callback: Notice) -> None:
        """See Engine."""
        self._notice = callback

    def watch(self, key: str, callback: Callable[[], None]) -> Callable[[], None] | None:
        """See Engine."""
        return self._state.watch(key, callback)

    def stop_waiting(self) -> None:
        """See Engine."""
        self._inbox.close()

    def close(self) -> None:
        """See Engine."""
        self._inbox.close()

    def after_fork(self) -> None:
        """See Engine."""
        self._state = self._own_state or shared_state(self.location)
        self._inbox = Inbox()
